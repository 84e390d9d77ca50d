"""What a run is like, on one page: scores, robustness, words, examples."""
