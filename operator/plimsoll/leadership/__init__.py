"""One replica leads: election, lease and the fence around writes."""
