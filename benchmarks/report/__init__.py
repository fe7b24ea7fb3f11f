"""Weight of the page of a fit, and how soon it can be worked with."""
