"""Runs a replica that shares the work with others: its roles, its duties, its nodes."""
