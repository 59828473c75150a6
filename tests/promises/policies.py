"""Reads of SchedulingPolicies as stored, with the defaults that the documentation gives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from promises.commits import Obj
from promises.pods import condition_of
from promises.record_book import RecordStory
from promises.view import POLICIES, View

#: Ceilings of a run where the policy says nothing.
LIMITS = {"total": 10, "perMinute": 10, "perNode": 2, "perNamespace": 5, "perWorkload": 1}


def in_force(view: View, story: RecordStory, at: float) -> list[Obj | None]:
    """The versions of a move's policy by which it may have been decided or sent, oldest first.

    Those that were in force when the record was written, or since: a policy that is edited in mid-run neither
    calls back what was decided before, nor is it known immediately. While a spec cannot be used an earlier
    one stays in force, so any of them counts.
    """
    key = ("", story.spec["policy"])
    versions = view.versions(POLICIES, key, story.born_at - view.stale_s)
    if any(each is not None and not is_accepted(each) for each in versions):
        return view.versions(POLICIES, key, -math.inf)
    return versions


def is_accepted(policy: Obj) -> bool:
    """Whether the operator has not refused the spec."""
    return condition_of(policy, "Accepted").get("status") != "False"


def scheduling_of(view: View, pod: Obj, at: float) -> Iterator[Obj]:
    """How the policies of a pod's scheduler place pods, by each version that a watch may show."""
    for key in view.known(POLICIES):
        for each in view.recent(POLICIES, key, at):
            scheduling: Obj = ((each or {}).get("spec") or {}).get("scheduling") or {}
            if scheduling.get("schedulerName") == pod["spec"].get("schedulerName"):
                yield scheduling


def rebalancing_of(policy: Obj | None) -> Obj:
    """How a policy moves pods; empty where it moves none."""
    return ((policy or {}).get("spec") or {}).get("rebalancing") or {}


def evictors_of(policy: Obj, strategy: str) -> Iterable[Obj]:
    """The evictors that decide on a strategy's candidates: with planner Upstream, it may have its own."""
    rebalancing = rebalancing_of(policy)
    own = [
        each["evictor"]
        for each in rebalancing.get("strategies") or ()
        if each["name"] == strategy and each.get("evictor") is not None
    ]
    shared = len(own) < sum(each["name"] == strategy for each in rebalancing.get("strategies") or ())
    return [*own, *([rebalancing.get("evictor") or {}] if shared or not own else [])]


def limits_of(policy: Obj) -> Obj:
    """The ceilings of a run."""
    return {**LIMITS, **(rebalancing_of(policy).get("limits") or {})}


def allowed(ceiling: int | str, population: int) -> float:
    """How many a ceiling allows: a number, or a share of those that there are, rounded down, at least one."""
    if isinstance(ceiling, int):
        return ceiling
    percent = int(ceiling.removesuffix("%"))
    if percent >= 100:
        return math.inf
    return max(percent * population // 100, 1) if percent else 0
