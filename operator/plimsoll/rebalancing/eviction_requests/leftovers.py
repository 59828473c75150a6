"""Decides what becomes of our EvictionRequests that no move waits for: they are withdrawn, and later deleted.

A request that is withdrawn stays for a while, so that responders can see it. One whose pod has left stays
until its record is complete: its controller may still say how it ended.
"""

from enum import Enum

from plimsoll.ports.eviction_requests import EvictionRequest

#: Seconds from withdrawing a request to deleting it.
WITHDRAWN_S = 60.0


class Clearing(Enum):
    """What is done with a request."""

    WITHDRAW = "withdraw"
    DELETE = "delete"
    LATER = "later"  #: it stays for now


def clearing(
    request: EvictionRequest, *, pod_gone: bool, pod_leaves: bool, is_recorded: bool, withdrawn_for_s: float
) -> Clearing:
    """What is done with a request that no move waits for.

    Args:
        request: As it is.
        pod_gone: Whether its pod is gone.
        pod_leaves: Whether its pod is on its way out.
        is_recorded: Whether a record of its name is not complete yet.
        withdrawn_for_s: Seconds since it was seen withdrawn.
    """
    if request.is_final or (pod_gone and not is_recorded):
        return Clearing.DELETE
    if request.is_withdrawn:
        return Clearing.DELETE if withdrawn_for_s >= WITHDRAWN_S else Clearing.LATER
    if pod_gone or pod_leaves:
        return Clearing.LATER
    return Clearing.WITHDRAW
