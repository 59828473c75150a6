"""The annotations with which people steer moves: stop all, pause, approve; and the label of policies."""

from collections.abc import Mapping

#: On the operator's namespace: "true" stops the moves of all policies.
STOP = "plimsoll.dev/stop"

#: On a namespace or policy that was paused from the command line: the user, and the reason.
PAUSED_BY, PAUSE_REASON = "plimsoll.dev/paused-by", "plimsoll.dev/pause-reason"

#: On a policy: each new value starts a run.
RUN = "plimsoll.dev/run"

#: Label of a policy: the operator that serves it; without the label, the one without a name.
OPERATOR = "plimsoll.dev/operator"

#: On a record in phase Planned: a person's answer to the proposal.
APPROVED = "plimsoll.dev/approved"

#: Values of the answer; any other value is not an answer.
ANSWERS = {"true": True, "false": False}


def stop_sentence(namespace: str, annotations: Mapping[str, str]) -> str:
    """Why no policy moves pods while a namespace has the stop button, by whom, and how to go on."""
    by = f" by {annotations[PAUSED_BY]}" if PAUSED_BY in annotations else ""
    why = f" ({annotations[PAUSE_REASON][:200]})" if PAUSE_REASON in annotations else ""
    return (
        f'all moves are stopped{by}{why}: namespace {namespace} is annotated {STOP}="true"; plimsoll resume'
        " lets them go on"
    )
