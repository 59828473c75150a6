"""Decides what becomes of our EvictionRequests that no move waits for: they are withdrawn, and later deleted.

A request that is withdrawn, or has come to its end, stays for a while, so that responders can see that: the
server deletes its Eviction with the last request. One whose pod has left stays until its record is complete:
its controller may still say how it ended.
"""

from enum import Enum

from plimsoll.ports.eviction_requests import EvictionRequest

#: Seconds from withdrawing a request to deleting it, and from its end.
WITHDRAWN_S, FINAL_S = 60.0, 15.0


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
