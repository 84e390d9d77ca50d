"""Renderings of an explanation other than terminal and JSON."""
