"""What Plimsoll may do: the rights that policies need and the answers of the API server about them."""
