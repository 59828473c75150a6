"""What authors of strategies use."""
