"""Field types, rules and the generation of custom resource definitions."""
