"""The subcommands of `wordward`, a file for each group of them."""
