"""How fast it is: every figure a ratio measured in one run, with its spread."""
