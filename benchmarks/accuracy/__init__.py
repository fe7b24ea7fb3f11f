"""What the comparisons do not show: few rows, single networks, sparse graphs, intervals."""
