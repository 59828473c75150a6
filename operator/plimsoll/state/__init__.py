"""The mutable few: one writer each, no I/O; ``validate()`` checks the invariants."""
