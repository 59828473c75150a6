"""The spec of a pod, in pods and in the templates of workloads: defaults, and the checks of each part."""
