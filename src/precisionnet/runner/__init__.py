"""Jobs spread over cores or a cluster, their rows stored so that no finished one is lost."""
