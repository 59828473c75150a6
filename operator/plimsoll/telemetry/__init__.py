"""What operators of the operator see."""
