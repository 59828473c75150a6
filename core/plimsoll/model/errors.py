"""The base class of Plimsoll's errors."""


class PlimsollError(Exception):
    """An error with a sentence for users (:mod:`plimsoll.framework.errors` has its kinds)."""
