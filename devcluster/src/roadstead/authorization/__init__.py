"""Decides who a client is and what it may do: identities, roles and their bindings."""
