"""Reads measured use of nodes and pods, from the metrics API and Prometheus, into the load book.

:mod:`~plimsoll.usage.load_keeper` updates the book; what it means is in ``plimsoll.load``.
"""
