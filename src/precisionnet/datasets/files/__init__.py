"""Files of tables, and the cells in them; nothing here knows what a brain is."""
