"""Commands about the installation: version, definitions, demo, completion."""
