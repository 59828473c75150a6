"""HTTP extenders: requests, responses, and the attempts that wait for them."""
