"""The demonstration: a cluster like a real one is placed, drifts out of balance, and is mended.

Everything real: the development cluster and the operator run as processes of their own, and the demo
speaks HTTP to the API server as any client does.
"""
