"""Pages of the operator and of the command line share this: style, tiles, and their content policy."""
