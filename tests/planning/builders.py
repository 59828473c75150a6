"""A policy for tests: toy plugins, a strategy that names pods, and their surroundings."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar

from engine.toys import ALL
from plimsoll.engine.profile import Enabled, Profile, ProfileConfig, build_profile
from plimsoll.framework import NoArgs, Registry
from plimsoll.framework.descheduling.proposals import Candidate, Refusal, Verdict
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.moves import EvictionPlan, PlanningContext, RebalancingConfig
from plimsoll.planning.planners import proven_plan as plan

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SURROUNDINGS = PlanningContext(now=NOW)


class Named:
    """Proposes every pod of every node, or those with a name in a list; notes the verdicts."""

    name: ClassVar = "Named"
    kind: ClassVar = StrategyKind.DESCHEDULE
    args_model: ClassVar = NoArgs

    def __init__(self, *names: str) -> None:
        self.names = names
        self.verdicts: list[Any] = []

    def candidates(self, context: Any) -> Iterator[Candidate]:
        for node in context.nodes:
            for pod in context.all_pods(node):
                if pod.stands_in_for is not None or (self.names and pod.name not in self.names):
                    continue
                verdict = yield Candidate(pod, node, "it was named")
                self.verdicts.append((pod.name, verdict))
                if verdict is Verdict.NODE_CLOSED:
                    break


class Guard:
    """Protects pods with the label ``stay``."""

    name: ClassVar = "Guard"
    args_model: ClassVar = NoArgs

    def filter(self, pod: Any, context: Any) -> Refusal | None:
        return Refusal("Stays", "the pod stays") if "stay" in pod.labels else None

    def pre_eviction_filter(self, pod: Any, context: Any) -> None:
        return None


def a_profile(*names: str) -> Profile:
    defaults = [Enabled(name) for name in ("Fifo", "Room", "Binds", *names)]
    return build_profile(ProfileConfig("default-scheduler"), Registry(ALL), defaults)


def a_rebalancing(*strategies: Any, plugins: tuple[str, ...] = (), **kwargs: Any) -> RebalancingConfig:
    profiles = kwargs.pop("profiles", {"default-scheduler": a_profile(*plugins)})
    return RebalancingConfig(strategies=strategies, evictors=(Guard(),), profiles=profiles, **kwargs)  # type: ignore[arg-type] # a fake has only what is used


def planned(cluster: Cluster, *names: str, **kwargs: Any) -> EvictionPlan:
    """The plan for moving pods of those names, or of all pods."""
    return plan(a_rebalancing(Named(*names), **kwargs), cluster, SURROUNDINGS)


def targets(found: EvictionPlan) -> dict[str, Any]:
    """Pod name to target node."""
    return {move.pod.name: move.target for move in found.moves}


def reasons(found: EvictionPlan) -> dict[str, Any]:
    """Pod name to machine reason of its refusal."""
    return {each.pod.name: each.refusal.reason for each in found.refused}
