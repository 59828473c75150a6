"""The API server, in our words. Nothing above this folder speaks HTTP."""
