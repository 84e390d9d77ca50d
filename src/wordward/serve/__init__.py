"""A web page on this machine on which a run answers: predictions, explanations, attacks."""
