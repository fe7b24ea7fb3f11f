"""How honest the tests of a fit are, and what happens on rows of another place."""
