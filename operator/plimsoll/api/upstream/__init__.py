"""Configuration formats of upstream."""
