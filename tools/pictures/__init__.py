"""Pictures of the documentation: diagrams from a small source, screenshots, the recorded demo."""
