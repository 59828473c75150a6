"""The version of all distributions of this repository; they are released together."""

__version__ = "0.1.0"
