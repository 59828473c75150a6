"""Admission that users configure: policies in the Common Expression Language."""
