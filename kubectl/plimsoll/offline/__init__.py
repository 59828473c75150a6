"""A cluster that no API server serves: pods wait, are placed and leave on a fork, in virtual time."""
