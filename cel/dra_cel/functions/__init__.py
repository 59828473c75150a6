"""The functions that expressions may call: one module per subject, each with a table of implementations."""
