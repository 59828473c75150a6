"""Makes the plans of a cluster's policies, each independently, as the operator would."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from plimsoll.inspection.plans.answer import Plan, PolicyPlan
from plimsoll.inspection.plans.comparison import compared
from plimsoll.inspection.plans.policy_plan import policy_plan
from plimsoll.inspection.state import ClusterState, JudgedPolicy


def plan_of(
    state: ClusterState,
    names: Collection[str] = (),
    old: tuple[str, ClusterState, Collection[str]] | None = None,
) -> Plan:
    """The plans of the named policies, or of all.

    Args:
        state: The cluster with its policies.
        names: Names of its policies; none means all.
        old: Another set to compare with: its name for people, the cluster with it, and names of its policies.
    """
    plans = tuple(policy_plans(state, names))
    comparison = None
    if old is not None:
        name, other, chosen = old
        comparison = compared(plans, policy_plans(other, chosen), name)
    return Plan(source=state.content.source, taken=state.time, policies=plans, comparison=comparison)


def policy_plans(state: ClusterState, names: Collection[str] = ()) -> Iterable[PolicyPlan]:
    """The plan of each policy, in order of age; if the operator would not run it, the reason."""
    for name, judged in state.policies.items():
        if not names or name in names:
            yield _plan(state, judged)


def replaced(
    documents: Iterable[Mapping[str, Any]], new: Iterable[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """The policies with these replacing those of the same names; new ones come last, as the youngest."""
    found = {name_of(each): each for each in documents}
    found.update({name_of(each): each for each in new})
    return list(found.values())


def name_of(document: Mapping[str, Any]) -> str:
    """The name in an object's metadata, "" without one."""
    return str((document.get("metadata") or {}).get("name") or "")


def _plan(state: ClusterState, judged: JudgedPolicy) -> PolicyPlan:
    policy, name = judged.policy, judged.name
    if policy is None:
        _, sentence = judged.problem
        return PolicyPlan(policy=name, outlook=judged.unknown or f"not accepted: {sentence}")
    if policy.spec.rebalancing is None:
        return PolicyPlan(policy=name, outlook="moves no pods: it has no spec.rebalancing")
    if name not in state.working:
        why = "suspended: the operator does not run it while spec.suspend is true"
        return PolicyPlan(policy=name, mode=policy.spec.rebalancing.mode, outlook=why)
    found = policy_plan(policy, state.run_input(name), _told(judged))
    if state.stop:
        found = found.model_copy(update={"notes": (state.stop, *found.notes)})
    return found


def _told(judged: JudgedPolicy) -> datetime | None:
    """Time of the next run from the policy's status, unless the status is about an earlier spec."""
    status = judged.document.get("status") or {}
    generation = (judged.document.get("metadata") or {}).get("generation")
    if status.get("observedGeneration") != generation:
        return None
    try:
        return datetime.fromisoformat(status["nextRunTime"])
    except (KeyError, TypeError, ValueError):
        return None
