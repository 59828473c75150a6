"""Reads the progress of an EvictionRequest for its record, and decides when an ended one is deleted.

:mod:`plimsoll.rebalancing.eviction_requests.transitions` decides when a move gives up.

The protocol (KEP-4563): a controller creates an Eviction for the request. The pod's responders act in turn,
and the last of them calls the Eviction API, which enforces budgets. It ends when the pod has left, or when no
requester or no responder is left.

A withdrawn or ended request stays for a while, so that responders can see its state: the server deletes its
Eviction with the last request. If the pod has left, the request stays until its record is complete, as its
controller may still report how it ended.
"""

from datetime import UTC, datetime
from enum import Enum

from msgspec import Struct

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.ports.eviction_requests import EvictionRequest

#: Reasons of records: requested, no controller acted on it, timed out, ended by others.
REQUESTED, NOT_TAKEN_UP, TIMED_OUT, ENDED = (
    "Requested",
    "RequestNotTakenUp",
    "RequestTimeout",
    "RequestWithdrawn",
)

#: Seconds within which a controller must act on a request.
TAKEN_UP_S = 120.0

#: Seconds between withdrawing a request and deleting it, and between its end and deleting it.
WITHDRAWN_S, FINAL_S = 60.0, 15.0

#: The controller's reason for a request without requesters.
_NO_REQUESTERS = "CanceledDueToNoRequesters"


class Standing(Struct, frozen=True):
    """The state that a record reports; phase Evicting while the pod has not left."""

    phase: Phase
    reason: str
    message: str

    @property
    def goes_on(self) -> bool:
        """Whether the pod is still expected to leave."""
        return self.phase is Phase.EVICTING


def standing(
    request: EvictionRequest | None, name: str, *, since: float, now: float, timeout_s: float
) -> Standing:
    """The state of a request whose pod still exists."""
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
    """Which responder acts, its message, and when it expects to finish."""
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
    """How a request is cleared up."""

    WITHDRAW = "withdraw"
    DELETE = "delete"
    LATER = "later"  #: it stays for now


def clearing(
    request: EvictionRequest, *, pod_gone: bool, pod_leaves: bool, is_recorded: bool, for_s: float
) -> Clearing:
    """How a request is cleared up that no move waits for.

    Args:
        request: Its present state.
        pod_gone: Whether its pod is gone.
        pod_leaves: Whether its pod is terminating.
        is_recorded: Whether it has a record that is not complete yet.
        for_s: Seconds since this state was first seen, withdrawn or ended.
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
