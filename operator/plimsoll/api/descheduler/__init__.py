"""What users of the kubernetes-sigs descheduler write: read for migration and for comparison."""
