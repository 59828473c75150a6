"""Commands that read the memory of a running operator."""
