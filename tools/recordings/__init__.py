"""Decides recorded cases of kube-scheduler and descheduler again, and compares every decision."""
