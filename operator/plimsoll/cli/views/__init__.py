"""Views lay answers out for people, a module a command."""
