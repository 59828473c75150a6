"""Custom resources of the group ``plimsoll.dev``, and their definitions."""
