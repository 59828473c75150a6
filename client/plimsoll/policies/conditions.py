"""Words the conditions of SchedulingPolicies: Ready, names that nearly match, earlier conditions."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from plimsoll.access.rights import Access, Part
from plimsoll.api.schema.conditions import Condition
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy

#: The reason of Ready that the watchdog writes when no operator leads (plimsoll.app.watchdog).
WITHDRAWN = "NoLeader"


def stopped_parts(policy: SchedulingPolicy, access: Access) -> dict[Part, str]:
    """The parts of a policy that cannot work because of missing rights, with the reasons."""
    found = {part: access.obstacle(policy, part) for part in Part}
    return {part: sentence for part, sentence in found.items() if sentence}


def work_of(policy: SchedulingPolicy, stopped: Mapping[Part, str]) -> str:
    """A sentence about what an accepted policy does, beginning with the parts that cannot work."""
    parts = list(stopped.values())
    if policy.spec.scheduling is not None and Part.SCHEDULING not in stopped:
        parts.append(f"pods with schedulerName {policy.spec.scheduling.scheduler_name} are placed")
    if policy.spec.rebalancing is not None and Part.REBALANCING not in stopped:
        names = ", ".join(strategy.name for strategy in policy.spec.rebalancing.strategies) or "no strategy"
        parts.append(f"rebalancing in mode {policy.spec.rebalancing.mode} with {names}")
    return "; ".join(parts) or "the spec asks for nothing"


def may_predict(policy: SchedulingPolicy | None) -> bool:
    """Whether a policy may have predictions; unknown, hence true, for one that was never accepted."""
    if policy is None:
        return True
    spec = policy.spec.rebalancing
    return spec is not None and spec.mode is Mode.DRY_RUN


def scheduler_name_of(policy: SchedulingPolicy | None, document: Mapping[str, Any]) -> str:
    """The scheduler name of a policy, "" for none; read from the document if it was never accepted."""
    if policy is not None:
        return "" if policy.spec.scheduling is None else policy.spec.scheduling.scheduler_name
    spec = document.get("spec")
    raw = spec.get("scheduling") if isinstance(spec, Mapping) else None
    return str(raw.get("schedulerName", "")) if isinstance(raw, Mapping) else ""


def names_in(document: Mapping[str, Any]) -> set[str]:
    """All names of plugins and strategies in a policy's document, whether it is valid or not."""
    found: set[str] = set()
    left: list[Any] = [document.get("spec")]
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            name = value.get("name")
            found |= {name} if isinstance(name, str) else set()
            left += value.values()
        elif isinstance(value, list):
            left += value
    return found


def written_conditions(document: Mapping[str, Any]) -> tuple[Condition, ...]:
    """The conditions that an earlier process wrote; with them transition times survive a restart."""
    found = []
    status = document.get("status")
    written = status.get("conditions") if isinstance(status, Mapping) else None
    for each in written if isinstance(written, list) else ():
        try:
            found.append(Condition.model_validate(each))
        except ValidationError:
            continue
    return tuple(found)


def near(name: str, known: Iterable[str]) -> str:
    """A suggestion for a name that may be mistyped, as the end of a sentence."""
    found = difflib.get_close_matches(name, [each for each in known if each != name], n=1, cutoff=0.75)
    return f'; did you mean "{found[0]}"?' if found else ""
