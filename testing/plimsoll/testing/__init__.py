"""Test support for authors of plugins and strategies: builders, inheritable laws, and reference recordings.

It ships with the package, and no other module of the package imports it.
"""
