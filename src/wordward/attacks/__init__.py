"""The parts of an attack: goal, guide, search, the rule of sense, files, tables."""
