"""What the acting halves need of the world, one module a subject."""
