"""The audience and the header of tokens that are valid for the operator's /explain/ only."""

#: The audience of tokens that the operator accepts in the header; it need not be an address.
AUDIENCE = "plimsoll.dev"

#: The header that replaces Authorization, which a proxying API server consumes.
HEADER = "Plimsoll-Authorization"

#: The ServiceAccount whose tokens callers request, in the namespace of the operator's lease.
READER = "plimsoll-reader"
