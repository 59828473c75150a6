"""Plants faults in rare branches of ``plimsoll``, as competent developers make them, one at a time."""
