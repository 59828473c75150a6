"""Checks a cluster before an installation, and the installation itself: ``plimsoll check``."""
