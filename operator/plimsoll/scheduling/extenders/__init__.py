"""HTTP extenders: their requests, what is made of the responses, and the attempts that wait for them."""
