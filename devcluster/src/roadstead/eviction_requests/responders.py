"""Decides which responder of an Eviction acts next, and when the Eviction has ended.

Source: Kubernetes pull request 137133 ``pkg/controller/evictionrequest/eviction_utils.go``, as of July 2026.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roadstead.controllers.pod_state import has_condition
from roadstead.eviction_requests.status_checks import HEARTBEAT_S
from roadstead.schemas.timestamps import to_seconds, to_timestamp

if TYPE_CHECKING:
    from roadstead.values.resources import Obj

IMPERATIVE, IMPERATIVE_PRIORITY = "imperative-eviction.k8s.io/evictor", 100
_ENDED = ("Interrupted", "Canceled", "Completed")
_AWAITING = "AwaitingEviction"


@dataclass(frozen=True, slots=True)
class Situation:
    """The state of an Eviction's pod.

    Attributes:
        is_gone: the pod does not exist.
        is_terminal: it has ended.
        is_cancelled: all requests are withdrawn.
        left_at: the time at which it was first seen deleted or finished, None before; as ``now``.
        now: seconds since the epoch.
    """

    is_gone: bool
    is_terminal: bool
    is_cancelled: bool
    left_at: float | None
    now: float

    @property
    def has_left(self) -> bool:
        """Whether the pod no longer exists or has finished."""
        return self.is_gone or self.is_terminal


@dataclass(frozen=True, slots=True)
class Turn:
    """The next status of an Eviction.

    Attributes:
        targets: ``status.targetResponders``.
        responders: ``status.responders``.
        again_s: seconds until the next reconcile, None for never.
        is_waiting: whether the active responder may still report its result.
        is_done: whether no responder is left.
    """

    targets: list[Obj]
    responders: list[Obj]
    again_s: float | None
    is_waiting: bool
    is_done: bool


def has_evicted(obj: Obj) -> bool:
    """Whether the pod left."""
    return has_condition(obj, "TargetEvicted")


def has_failed(obj: Obj) -> bool:
    """Whether no responder is left although the pod exists."""
    return has_condition(obj, "Failed")


def ended(eviction: Obj) -> bool:
    """Whether an Eviction has ended."""
    return has_evicted(eviction) or has_failed(eviction)


def wants_eviction(requests: list[Obj]) -> bool:
    """Whether a request is active; a request that is being deleted is not."""
    return any(
        one["spec"]["intent"] == "Eviction" and "deletionTimestamp" not in one["metadata"] for one in requests
    )


def _order(responder: Obj) -> tuple[int, list[str], str]:
    domain, _, key = responder["name"].partition("/")
    return (-responder["priority"], domain.split(".")[::-1], key)


def ordered_responders(status: Obj, pod: Obj | None) -> list[Obj]:
    """The responders of an Eviction: those of its status, else those of the pod and the default one."""
    known: list[Obj] = status.get("targetResponders") or []
    if known:
        return [dict(one) for one in known]
    if pod is None:
        return []
    named = [
        *(pod["spec"].get("evictionResponders") or []),
        {"name": IMPERATIVE, "priority": IMPERATIVE_PRIORITY},
    ]
    return [
        {"name": one["name"], "priority": one["priority"], "state": "Inactive"}
        for one in sorted(named, key=_order)
    ]


def next_turn(status: Obj, targets: list[Obj], situation: Situation, report_s: float) -> Turn:
    """The next status of an Eviction.

    Args:
        status: the status of the Eviction.
        targets: its responders; changed.
        situation: the state of the pod.
        report_s: seconds after the pod left in which its responder may report its result.
    """
    reports = {one["name"]: one for one in status.get("responders") or []}
    active = next((at for at, one in enumerate(targets) if one["state"] == "Active"), None)
    at_work = None if active is None else reports.get(targets[active]["name"])
    wait_s = _report_left(at_work, situation, report_s)
    again_s: float | None = None
    is_done = not targets or targets[-1]["state"] in _ENDED
    if is_done:
        pass
    elif situation.has_left:
        if active is not None and at_work is not None and "completionTime" in at_work:
            targets[active]["state"] = "Completed"
        elif active is not None and wait_s is None:
            targets[active]["state"] = "Interrupted"
    elif situation.is_cancelled:
        if active is not None:
            targets[active]["state"] = "Canceled"
    else:
        again_s = _go_on(targets, reports, active, situation.now)
    responders = [_begun(reports.get(one["name"]), one, situation.now) for one in targets]
    if situation.has_left:
        again_s = wait_s
    return Turn(targets, responders, again_s, is_waiting=wait_s is not None, is_done=is_done)


def _report_left(at_work: Obj | None, situation: Situation, report_s: float) -> float | None:
    """Seconds in which an active responder may still report its result after its pod has left."""
    if at_work is None or "completionTime" in at_work or situation.left_at is None:
        return None
    left = report_s - (situation.now - situation.left_at)
    return left if left > 0 else None


def _go_on(targets: list[Obj], reports: dict[str, Obj], active: int | None, now: float) -> float:
    """Keep the active responder or activate the next; seconds until the active one must report."""
    at = active
    if at is None:
        at = next(index for index, one in enumerate(targets) if one["state"] == "Inactive")
    report = reports.get(targets[at]["name"]) or {}
    if "completionTime" in report:
        targets[at]["state"] = "Completed"
    else:
        heard = report.get("heartbeatTime") or report.get("startTime")
        left = HEARTBEAT_S - (0.0 if heard is None else now - to_seconds(heard))
        targets[at]["state"] = "Active" if left > 0 else "Interrupted"
        if left > 0:
            return left
    if at + 1 < len(targets):
        targets[at + 1]["state"] = "Active"
    return HEARTBEAT_S


def _begun(text: Obj | None, target: Obj, now: float) -> Obj:
    """The report of a responder; an active one has a start time."""
    report = dict(text or {"name": target["name"]})
    if target["state"] == "Active":
        report.setdefault("startTime", to_timestamp(now))
    return report


def conditions_of(
    situation: Situation, *, is_waiting: bool, is_done: bool
) -> list[tuple[str, str, str, str]]:
    """Type, status, reason and message of each condition of an Eviction."""
    failed, evicted = ("False", _AWAITING, ""), ("False", _AWAITING, "")
    if situation.has_left and not is_waiting:
        failed = ("False", "Succeeded", "")
        evicted = (
            ("True", "PodDeleted", "Target pod has been deleted")
            if situation.is_gone
            else ("True", "PodTerminal", "Pod has reached terminal state")
        )
    elif situation.is_cancelled and not situation.has_left:
        failed = ("True", "CanceledDueToNoRequesters", "No active requesters with eviction intent")
        evicted = ("False", "EvictionFailed", "")
    elif is_done and not situation.has_left:
        failed = ("True", "NoFurtherResponder", "All responders have completed without evicting the target")
        evicted = ("False", "EvictionFailed", "")
    return [("Failed", *failed), ("TargetEvicted", *evicted)]
