"""Derives the conditions of a SchedulingPolicy from its state."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from plimsoll.access.rights import NOT_ALLOWED, Access, Part
from plimsoll.api.schema.conditions import (
    ACCEPTED,
    DEGRADED,
    READY,
    Condition,
    ConditionStatus,
    with_condition,
)
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy

#: Characters of a condition's message, as the API server allows.
LONGEST_MESSAGE = 32_768


def stopped_parts(policy: SchedulingPolicy, access: Access) -> dict[Part, str]:
    """The parts of a policy that the operator's rights do not let work, and why."""
    found = {part: access.obstacle(policy, part) for part in Part}
    return {part: sentence for part, sentence in found.items() if sentence}


def work_of(policy: SchedulingPolicy, stopped: Mapping[Part, str]) -> str:
    """What an accepted policy does, in a sentence; what it may not do first."""
    parts = list(stopped.values())
    if policy.spec.scheduling is not None and Part.SCHEDULING not in stopped:
        parts.append(f"pods with schedulerName {policy.spec.scheduling.scheduler_name} are placed")
    if policy.spec.rebalancing is not None and Part.REBALANCING not in stopped:
        names = ", ".join(strategy.name for strategy in policy.spec.rebalancing.strategies) or "no strategy"
        parts.append(f"rebalancing in mode {policy.spec.rebalancing.mode} with {names}")
    return "; ".join(parts) or "the spec asks for nothing"


def may_predict(policy: SchedulingPolicy | None) -> bool:
    """Whether a policy may have predictions; of one that was never accepted nothing is known."""
    if policy is None:
        return True
    spec = policy.spec.rebalancing
    return spec is not None and spec.mode is Mode.DRY_RUN


def scheduler_name_of(policy: SchedulingPolicy | None, document: Mapping[str, Any]) -> str:
    """The scheduler name of a policy, "" for none; of one that was never accepted by its document."""
    if policy is not None:
        return "" if policy.spec.scheduling is None else policy.spec.scheduling.scheduler_name
    spec = document.get("spec")
    raw = spec.get("scheduling") if isinstance(spec, Mapping) else None
    return str(raw.get("schedulerName", "")) if isinstance(raw, Mapping) else ""


def written_conditions(document: Mapping[str, Any]) -> tuple[Condition, ...]:
    """The conditions that an earlier process wrote, so that transition times survive a restart."""
    found = []
    status = document.get("status")
    written = status.get("conditions") if isinstance(status, Mapping) else None
    for each in written if isinstance(written, list) else ():
        try:
            found.append(Condition.model_validate(each))
        except ValidationError:
            continue
    return tuple(found)


@dataclass(frozen=True, slots=True)
class PolicyState:
    """What the conditions of a policy are made of.

    Attributes:
        policy: As last accepted; None before.
        problem: Reason and sentence of a spec that is not accepted or not served; empty otherwise.
        serves: Whether the accepted state is in force.
        stopped: The parts that the operator's rights do not let work, and why.
        notes: Sentences by reason for which the policy is degraded.
        advice: Further conditions that hold: reason and sentence by type.
    """

    policy: SchedulingPolicy | None
    problem: tuple[str, str]
    serves: bool
    stopped: Mapping[Part, str]
    notes: Mapping[str, str]
    advice: Mapping[str, tuple[str, str]]


def described(
    before: tuple[Condition, ...], state: PolicyState, generation: int, now: datetime
) -> tuple[Condition, ...]:
    """The conditions of a policy; those that do not change keep their transition time."""
    conditions = before
    reason, sentence = state.problem

    def said(kind: str, holds: bool, why: str, text: str) -> None:
        nonlocal conditions
        status = ConditionStatus.TRUE if holds else ConditionStatus.FALSE
        conditions = with_condition(
            conditions, kind, status, reason=why, message=text, now=now, generation=generation
        )

    if reason:
        said(ACCEPTED, holds=False, why=reason, text=sentence)
    else:
        said(ACCEPTED, holds=True, why="Valid", text="every part of the spec can be used")
    if state.policy is not None and state.policy.spec.suspend:
        said(READY, holds=False, why="Suspended", text="spec.suspend is true; nothing is decided")
    elif state.policy is None or not state.serves:
        said(READY, holds=False, why=reason or "NotAccepted", text=sentence)
    else:
        why = NOT_ALLOWED if state.stopped else "Serving"
        said(READY, holds=not state.stopped, why=why, text=work_of(state.policy, state.stopped))
    for kind in [each.type for each in conditions if each.type not in (ACCEPTED, READY, DEGRADED)]:
        if kind not in state.advice:
            said(kind, holds=False, why="AsExpected", text="nothing of the kind is known any more")
    for kind, (why, text) in state.advice.items():
        said(kind, holds=True, why=why, text=text[:LONGEST_MESSAGE])
    if state.notes:
        sentences = "; ".join(state.notes.values())[:LONGEST_MESSAGE]
        said(DEGRADED, holds=True, why=next(iter(state.notes)), text=sentences)
    else:
        said(DEGRADED, holds=False, why="AsExpected", text="nothing is missing")
    return conditions


def near(name: str, known: Iterable[str]) -> str:
    """A suggestion for a name that may be mistyped, as the end of a sentence."""
    found = difflib.get_close_matches(name, [each for each in known if each != name], n=1, cutoff=0.75)
    return f'; did you mean "{found[0]}"?' if found else ""
