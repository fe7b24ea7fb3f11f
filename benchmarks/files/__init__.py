"""How safe a saved model is, and what predicting a large table takes."""
