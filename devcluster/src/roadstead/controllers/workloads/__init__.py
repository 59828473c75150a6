"""Runs the controllers of Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs."""
