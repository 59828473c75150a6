"""What is particular to each kind: defaults, checks, what an update may change. One small file a family."""
