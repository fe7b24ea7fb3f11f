"""From files to a data set: recognise, read, join, and give every column its role."""
