"""Checks an installation, for ``plimsoll check`` and for the operator when it starts.

Judging is pure and has a module a subject (server, definitions, rights, leases, other schedulers, pods,
policies); :mod:`plimsoll.preflight.survey` reads what they judge.
"""
