"""A replica among others that share the work: its roles, its duties, its nodes."""
