"""Tables that are drawn: graphs, precisions, Gaussian rows."""
