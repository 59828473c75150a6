"""An embedded Kubernetes API server on loopback, for demos, benchmarks and tests.

Real HTTP, all state in memory, one asyncio process; judged against recordings of a real API server (1.36).
Nothing of plimsoll but the command line imports it, and it imports nothing else of plimsoll.

Read in this order: ``resources`` (what is served), ``store`` (objects and their history), ``statuses``
(how a refusal is told), ``kinds`` (what is particular to a kind), ``api`` (the one write path), ``server``
(HTTP).
"""
