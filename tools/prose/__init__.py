"""Checks the prose of the repository: phrases, module docstrings, module names, metric help, glossary."""
