"""Orders the scheduling queue by the shares of fair queues."""
