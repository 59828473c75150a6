"""Binding among replicas: each binds to the nodes of its own shares, and asks the others for theirs."""
