"""Public cohorts: where their files are, how they are fetched, and the data sets made of them."""
