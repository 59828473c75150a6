"""Writes the admission policy that warns of faulty policies: ``make crds``."""
