"""Serves HTTP requests: lists, watches, writes, tables, reviews and metrics."""
