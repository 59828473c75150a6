"""What adopts pods: admission objects for policies with ``spec.scheduling.adopt``, and how they drift."""
