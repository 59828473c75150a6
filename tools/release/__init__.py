"""Makes what a release publishes, in a folder; .github/workflows/release.yml adds images and signatures."""
