"""What stops rebalancing: the stop button and the displacement breaker."""
