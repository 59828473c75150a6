"""The annotations with which people steer moves: stop all, pause, approve a proposal."""

#: On the operator's namespace: "true" stops the moves of all policies.
STOP = "plimsoll.dev/stop"

#: On a namespace or policy that was paused from the command line: the user, and the reason.
PAUSED_BY, PAUSE_REASON = "plimsoll.dev/paused-by", "plimsoll.dev/pause-reason"

#: On a record in phase Planned: a person's answer to the proposal.
APPROVED = "plimsoll.dev/approved"

#: Values of the answer; any other value is not an answer.
ANSWERS = {"true": True, "false": False}
