"""The faces of an explanation beside the terminal and JSON."""
