"""Expected use of pods and nodes, in one book for both wings (docs/adr/0034-real-load.md)."""
