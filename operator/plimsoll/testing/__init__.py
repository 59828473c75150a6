"""For authors of plugins and strategies: builders, laws to inherit, and recordings to be measured by.

Shipped with the package and imported by nothing else of ours.
"""
