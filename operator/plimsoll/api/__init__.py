"""What users write and read: the custom resources of the group ``plimsoll.dev``, and their CRDs."""
