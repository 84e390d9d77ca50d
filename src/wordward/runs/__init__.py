"""A trained model at rest and at work: its folder and weights, reading texts, predicting, scoring."""
