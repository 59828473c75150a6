"""Places pods: the queue, the scheduling loop, the binding pipeline."""
