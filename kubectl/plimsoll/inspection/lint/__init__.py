"""Finds workloads and budgets that cannot be placed or moved well; pure."""
