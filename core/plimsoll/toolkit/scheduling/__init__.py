"""Code shared by scheduling plugins: matching nodes, scoring resources, choosing victims and volumes."""
