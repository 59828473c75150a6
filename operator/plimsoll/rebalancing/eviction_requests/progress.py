"""Reads how far an EvictionRequest is, for our record, and when an ended one may be deleted.

When a move gives up is decided in :mod:`plimsoll.rebalancing.eviction_requests.transitions`.

The protocol (KEP-4563): a controller makes an Eviction of the request; the pod's responders act in turn, and
the last of them calls the Eviction API, budgets included. It ends when the pod has left, or when no requester
or no responder is left.

A request that is withdrawn, or has come to its end, stays for a while, so that responders can see that: the
server deletes its Eviction with the last request. One whose pod has left stays until its record is complete:
its controller may still say how it ended.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.ports.eviction_requests import EvictionRequest

#: Reasons of records: asked for, not taken up by any controller, not done in time, ended by somebody else.
REQUESTED, NOT_TAKEN_UP, TIMED_OUT, ENDED = (
    "Requested",
    "RequestNotTakenUp",
    "RequestTimeout",
    "RequestWithdrawn",
)

#: Seconds in which a controller is to take a request up.
TAKEN_UP_S = 120.0

#: Seconds from withdrawing a request to deleting it, and from its end.
WITHDRAWN_S, FINAL_S = 60.0, 15.0

#: The controller's word for a request that has no requester left.
_NO_REQUESTERS = "CanceledDueToNoRequesters"


@dataclass(frozen=True, slots=True)
class Standing:
    """What a record is to say; phase Evicting while the pod is waited for."""

    phase: Phase
    reason: str
    message: str

    @property
    def goes_on(self) -> bool:
        """Whether the pod is still waited for."""
        return self.phase is Phase.EVICTING


def standing(
    request: EvictionRequest | None, name: str, *, since: float, now: float, timeout_s: float
) -> Standing:
    """How a request stands whose pod is still there."""
    told = f"EvictionRequest {name}"
    if request is None:
        return Standing(Phase.CANCELLED, ENDED, f"somebody deleted {told}, which withdraws it")
    if request.failure == _NO_REQUESTERS or (request.is_withdrawn and not request.failure):
        return Standing(Phase.CANCELLED, ENDED, f"somebody withdrew {told}")
    if request.failure:
        return Standing(Phase.FAILED, request.failure, f"{told} failed: {request.message}")
    if not request.is_observed and now - since >= TAKEN_UP_S:
        return Standing(
            Phase.FAILED,
            NOT_TAKEN_UP,
            f"no controller took up {told} within {TAKEN_UP_S:.0f} s: the server offers lifecycle.k8s.io, but"
            " the evictionrequest-controller of kube-controller-manager does not seem to run",
        )
    progress = _progress(request)
    if now - since >= timeout_s:
        return Standing(
            Phase.FAILED, TIMED_OUT, f"the pod did not leave within {timeout_s:.0f} s; {told}: {progress}"
        )
    return Standing(Phase.EVICTING, REQUESTED, f"{told}: {progress}")


def _progress(request: EvictionRequest) -> str:
    """Who is at work, what they tell, and when they expect to be done."""
    if not request.is_observed:
        return "waits to be taken up"
    if not request.responder:
        return "no responder has answered yet"
    told = f"{request.responder} is at work"
    if request.expected is not None:
        moment = datetime.fromtimestamp(request.expected, UTC)
        told += f", expects to be done at {moment:%Y-%m-%dT%H:%M:%SZ}"
    return f"{told}: {request.said}" if request.said else told


class Clearing(Enum):
    """What is done with a request."""

    WITHDRAW = "withdraw"
    DELETE = "delete"
    LATER = "later"  #: it stays for now


def clearing(
    request: EvictionRequest, *, pod_gone: bool, pod_leaves: bool, is_recorded: bool, for_s: float
) -> Clearing:
    """What is done with a request that no move waits for.

    Args:
        request: As it is.
        pod_gone: Whether its pod is gone.
        pod_leaves: Whether its pod is on its way out.
        is_recorded: Whether a record of its name is not complete yet.
        for_s: Seconds since it was first seen like this, withdrawn or at its end.
    """
    if request.is_final:
        return Clearing.DELETE if for_s >= FINAL_S else Clearing.LATER
    if pod_gone and not is_recorded:
        return Clearing.DELETE
    if request.is_withdrawn:
        return Clearing.DELETE if for_s >= WITHDRAWN_S else Clearing.LATER
    if pod_gone or pod_leaves:
        return Clearing.LATER
    return Clearing.WITHDRAW
