"""Admission objects that adopt pods for policies with ``spec.scheduling.adopt``, and their comparison."""
