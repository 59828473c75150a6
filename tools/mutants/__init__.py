"""Tries mutants of ``plimsoll``, copies of a module with one slip, against the tests that reach it."""
