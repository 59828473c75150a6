"""Features of a simulated cluster beyond nodes, Deployments and budgets, each drawn with a probability."""
