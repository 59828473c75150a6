"""Plans evictions as descheduler does."""
