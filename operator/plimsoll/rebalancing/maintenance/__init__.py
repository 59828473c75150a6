"""Carries NodeMaintenances out: :mod:`.progress` decides, :mod:`.maintenances` reads, starts and writes."""
