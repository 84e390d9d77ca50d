"""Which word of a text is pulled toward which words: finding it, and showing it."""
