"""From files to a data set: recognise, read, choose scans, join, and give every column its role."""
