"""Several processes: as one that trains, beside this one, and one at a time."""
