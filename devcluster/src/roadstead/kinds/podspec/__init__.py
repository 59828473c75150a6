"""Sets defaults of pod specs and checks them, in pods and in templates of workloads."""
