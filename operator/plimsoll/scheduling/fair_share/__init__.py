"""Orders the queue by the shares of its users."""
