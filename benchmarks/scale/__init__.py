"""Cost against columns and rows, with peak memory as the operating system counts it."""
