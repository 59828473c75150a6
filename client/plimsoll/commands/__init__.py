"""Declares, parses and ends commands, of the operator and of the command line."""
