"""The demonstration: a realistic cluster is placed, drifts out of balance, and is mended.

The development cluster and the operator run as processes of their own; the demo is a client of the API server
like any other.
"""
