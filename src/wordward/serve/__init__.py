"""A web page on this machine on which a run answers: predictions, explanations, attacks."""

from wordward.serve.app import create_app

__all__ = ["create_app"]
