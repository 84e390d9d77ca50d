"""The paper's tables: their rows, numbers and settings; running them; our results next to the paper's."""
