"""Checks an installation, for ``plimsoll check`` and for the operator when it starts.

Judging is pure and has one module for each subject (server, definitions, rights, leases, other schedulers,
pods, policies). What only the command judges, and its reads, are in ``plimsoll.check``.
"""
