"""The page docs/benchmarks.md: declaration, measurement and rendering."""
