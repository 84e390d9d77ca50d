"""The paper's tables: their rows and numbers, the settings of these, running them, ours beside the paper's."""
