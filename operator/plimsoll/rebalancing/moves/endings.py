"""The words with which records of moves are closed that are not made."""

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.rebalancing.moves.state import Landing

#: The annotation by which people answer a proposal, and the reason of a record that was rejected.
APPROVED = "plimsoll.dev/approved"
REJECTED = "Rejected"

#: What the annotation says; any other value is no answer.
ANSWERS = {"true": True, "false": False}

#: The reason of records whose bundle is not made.
NOT_ALL = "NotAll"


#: The reason of a record whose move the planner could not judge again.
NOT_REVALIDATED = "NotRevalidated"


def cancelled(reason: str, message: str) -> Landing:
    """Something that was announced does not happen."""
    return Landing(Phase.CANCELLED, reason, message)


def not_all(message: str) -> Landing:
    """A move is not made, because another one of its bundle is not."""
    return cancelled(NOT_ALL, message)


POLICY_CHANGED = cancelled("PolicyChanged", "the policy was changed, suspended or deleted")
UNPLANNED = cancelled("NoLongerPlanned", "the latest run does not plan the move")
GONE = cancelled("Gone", "the pod is gone already")
NOT_RECORDED = cancelled("NotRecorded", "the record could not be written, so nothing was sent")
OTHERWISE = cancelled(
    "Changed", "its owner or its best place has changed since the plan; the next run decides afresh"
)
REJECTION = cancelled(REJECTED, f"somebody annotated it {APPROVED}=false")

NOT_MADE = not_all("a move that it goes together with was not made")
NOT_JUDGED = not_all("a move that it goes together with could not be judged")
NOT_PROPOSED = not_all("another record of its bundle is gone, or was called off")
FOR_NO_POD = not_all("the pod that the moves make room for is gone")
