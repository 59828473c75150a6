"""What ``kubectl get`` prints of each built-in kind: columns and their cells."""
