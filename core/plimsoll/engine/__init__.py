"""Pure scheduling decisions over a snapshot: nodes for pods and victims of preemption."""
