"""The base class of answers to people, and the facts that only a running operator knows."""
