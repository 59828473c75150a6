"""What an extender is asked and what its answer changes."""
