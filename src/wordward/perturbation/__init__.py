"""The paper's method: where a perturbation may point, how it is chosen, what it is to raise; no files, no runs.

Nothing is imported here, so that `recipes` can be read without torch.
"""
