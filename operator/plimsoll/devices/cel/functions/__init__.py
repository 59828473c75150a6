"""The functions that expressions may call, a module a subject, each with a table of implementations."""
