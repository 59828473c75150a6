"""Checks the status of Evictions: final conditions, order and progress of responders.

The controller and each responder write the status, so the server enforces the protocol.

Source: Kubernetes pull request 137050 ``pkg/apis/lifecycle/validation/validation.go``
(ValidateAllEvictionStatusResponderFields).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import IMMUTABLE, forbidden, immutable, invalid, one_of, required
from roadstead.schemas.timestamps import to_seconds

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

HEARTBEAT_S = 1200.0
"""Seconds without a heartbeat after which the next responder is activated."""
SKEW_S = 30.0
TEN_YEARS_S = 10 * 365 * 24 * 3600.0

STATES = ("Active", "Canceled", "Completed", "Inactive", "Interrupted")
_ENDED = ("Canceled", "Completed", "Interrupted")
_FINAL = ("TargetEvicted", "Failed")
_MESSAGE_LENGTH = 4000


def generation_causes(new: Obj, old: Obj) -> list[Cause]:
    """The observed generation may only grow."""
    field = "status.observedGeneration"
    after = (new.get("status") or {}).get("observedGeneration")
    before = (old.get("status") or {}).get("observedGeneration")
    if after is None:
        return [] if before is None else [required(field, "may not be unset")]
    if after < max(before or 1, 1):
        return [invalid(field, after, f"must be greater than or equal to {max(before or 1, 1)}")]
    return []


def _conditions(obj: Obj) -> dict[str, Obj]:
    return {one.get("type", ""): one for one in (obj.get("status") or {}).get("conditions") or ()}


def condition_causes(new: Obj, old: Obj) -> list[Cause]:
    """The conditions of a finished Eviction cannot change."""
    after = _conditions(new)
    return [
        invalid("status.conditions", list(after.values()), f"{name} condition status cannot be reverted")
        for name, was in _conditions(old).items()
        if name in _FINAL and was.get("status") == "True" and after.get(name) != was
    ]


def responder_causes(new: Obj, old: Obj, now: float) -> list[Cause]:
    """Faults of the order and the reports of responders.

    Args:
        new: with the new status.
        old: with the present one.
        now: seconds since the epoch.
    """
    status, before = new.get("status") or {}, old.get("status") or {}
    targets, was = status.get("targetResponders") or [], before.get("targetResponders") or []
    reports, reports_before = status.get("responders") or [], before.get("responders") or []
    names = [one.get("name") for one in targets]
    if was and names != [one.get("name") for one in was]:
        return [invalid("status.targetResponders", names, "must preserve the same keys in the same order")]
    if names != [one.get("name") for one in reports]:
        why = "must contain the same keys in the same order as status.targetResponders"
        return [invalid("status.responders", [one.get("name") for one in reports], why)]
    conditions = {**_conditions(old), **_conditions(new)}
    is_final = any(conditions.get(name, {}).get("status") == "True" for name in _FINAL)
    causes: list[Cause] = []
    active = next((at for at, one in enumerate(was) if one.get("state") == "Active"), -1)
    gave_up = active >= 0 and targets[active].get("state") != "Active"
    for at, one in enumerate(targets):
        field = f"status.targetResponders[{at}].state"
        causes += one_of(field, one.get("state"), STATES)
        allowed, why = _allowed(at, was, active, gave_up=gave_up, is_final=is_final)
        if one.get("state") not in allowed:
            wanted = ", ".join(sorted(allowed))
            causes.append(invalid(field, one.get("state"), f"must be one of: {wanted}, because {why}"))
        elif "Active" not in allowed and not is_final and _is_at_work(reports[at], now):
            why = "must stay Active because the responder is in progress and it should report"
            causes.append(forbidden(field, f"{why} status.responders.heartbeatTime or completionTime"))
    for at, one in enumerate(reports):
        known = reports_before[at] if at < len(reports_before) else None
        causes += _progress_causes(one, known, f"status.responders[{at}]", targets[at].get("state"), now)
    return causes


def _allowed(
    at: int, was: list[Obj], active: int, *, gave_up: bool, is_final: bool
) -> tuple[tuple[str, ...], str]:
    """The states that a responder may have, and the reason."""
    if was and (at < active or (active < 0 and is_final)):
        return (was[at].get("state", ""),), "final state is immutable"
    if at == active and (gave_up or is_final):
        return _ENDED, "this responder must reach a final state"
    if at == active:
        return ("Active",), "the eviction request stays active"
    if (at == 0 and not was) or (at == active + 1 and gave_up):
        if is_final:
            return ("Inactive",), "the eviction request has finished processing"
        return ("Active",), "this responder is next in line"
    return ("Inactive",), "the previously active has not finished processing"


def _is_at_work(report: Obj, now: float) -> bool:
    """Whether a responder has started, has not finished, and has reported recently."""
    started = report.get("startTime")
    if started is None or report.get("completionTime") is not None:
        return False
    return now < to_seconds(report.get("heartbeatTime") or started) + HEARTBEAT_S - SKEW_S


def _progress_causes(new: Obj, old: Obj | None, at: str, state: str | None, now: float) -> list[Cause]:
    """Faults of the report of one responder."""
    if old is not None and new != old and state != "Active":
        return [invalid(at, new.get("name"), IMMUTABLE)]
    before = old or {}
    causes: list[Cause] = []
    started = new.get("startTime")
    for name in ("startTime", "completionTime"):
        if name in before:
            causes += immutable(f"{at}.{name}", new.get(name), before[name])
    if started is None and state == "Active":
        causes.append(required(f"{at}.startTime", "is required for an active responder"))
    if "heartbeatTime" in before and "heartbeatTime" not in new:
        causes.append(required(f"{at}.heartbeatTime", "is required once set"))
    for name in ("startTime", "heartbeatTime", "completionTime", "expectedCompletionTime"):
        if name in new and new[name] != before.get(name):
            causes += _time_causes(f"{at}.{name}", name, new, before, now)
    if len(new.get("message") or "") > _MESSAGE_LENGTH:
        causes.append(invalid(f"{at}.message", "", f"must not be longer than {_MESSAGE_LENGTH} characters"))
    return causes


def _time_causes(field: str, name: str, new: Obj, before: Obj, now: float) -> list[Cause]:
    """Faults of a time that a responder has changed."""
    started, value = new.get("startTime"), new[name]
    if started is None:
        return [invalid(field, value, "cannot be set before startTime is set")]
    moment = to_seconds(value)
    if moment < to_seconds(started):
        return [invalid(field, value, "must occur after startTime")]
    if name == "heartbeatTime" and name in before and moment < to_seconds(before[name]):
        return [invalid(field, value, "cannot be decreased")]
    if name != "expectedCompletionTime":
        near = abs(moment - now) < SKEW_S
        return [] if near else [invalid(field, value, "must be set to the present time")]
    if moment < now - SKEW_S:
        return [invalid(field, value, "cannot be set to the past time")]
    return [] if moment <= now + TEN_YEARS_S else [invalid(field, value, "must complete within 10 years")]
