"""What kopf calls: parse, delegate. kopf carries our own custom resources and nothing else."""
