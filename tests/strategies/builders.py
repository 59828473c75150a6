"""Running a strategy alone: everything it proposes is accepted and leaves, as in upstream's own tests."""

from datetime import UTC, datetime
from typing import Any

from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.context import StrategyContext, considered_nodes
from plimsoll.framework.descheduling.measurements import Measurements, Planner
from plimsoll.framework.descheduling.pod_indexes import UnplacedPods
from plimsoll.framework.descheduling.proposals import Candidate, Verdict
from plimsoll.framework.descheduling.prospects import Nowhere
from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.planning.fork_schedulers import ForkSchedulers
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.planning.proven.prospects import ForkProspects
from plimsoll.planning.strategy_run import run_strategy
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.strategies.default_evictor import DefaultEvictor, DefaultEvictorArgs
from plimsoll.testing.builders import a_cluster, a_pod

PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(PLUGINS),
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
)
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def an_evictor(**args: Any) -> DefaultEvictor:
    return DefaultEvictor(DefaultEvictorArgs.model_validate(args))


def a_context(
    nodes: list[Node],
    pods: list[Pod] | tuple[Pod, ...] = (),
    *,
    evictor: DefaultEvictor | None = None,
    exact: bool = True,
    only: set[str] | None = None,
    measurements: Measurements | None = None,
    objects: dict[str, Any] | None = None,
) -> StrategyContext:
    cluster = a_cluster(nodes, [pod for pod in pods if not pod.is_terminal])
    for kind, values in (objects or {}).items():
        getattr(cluster.objects, kind).update(values)
    ended = [cluster.templates.info(pod) for pod in pods if pod.is_terminal or not pod.spec.node_name]
    names = considered_nodes(cluster)
    policy = RebalancingConfig((), (), {"default-scheduler": PROFILE})
    schedulers = ForkSchedulers(policy.profiles, cluster)
    return StrategyContext(
        cluster=cluster,
        nodes=tuple(name for name in names if only is None or name in only),
        now=NOW,
        evictors=(evictor or an_evictor(),),
        planner=Planner.UPSTREAM if exact else Planner.PROVEN,
        unplaced=UnplacedPods(ended),
        measurements=measurements or Measurements(),
        prospects=Nowhere() if exact else ForkProspects(cluster, policy, schedulers),
    )


def evicted(strategy: Strategy, context: StrategyContext, *, per_node: int | None = None) -> list[str]:
    """Names of the pods that go when all are accepted, in order; ``per_node``: the node limit."""
    names = []
    by_node: dict[Any, Any] = {}

    def judge(candidate: Candidate) -> Verdict:
        count = by_node.get(candidate.node, 0)
        if per_node is not None and count >= per_node:
            return Verdict.NODE_CLOSED
        by_node[candidate.node] = count + 1
        names.append(candidate.pod.name)
        context.cluster.displace(candidate.pod.uid)
        context.unplaced.discard(candidate.pod.uid)
        return Verdict.ACCEPTED

    run_strategy(strategy, context, judge)  # type: ignore[arg-type] # a fake has only what is used
    return names


def a_strategy(kind: Any, **args: Any) -> Any:
    return kind(kind.args_model.model_validate(args))


def pods_on(
    node: str, count: int, *, prefix: str = "", owner: str = "ReplicaSet/web", **kwargs: Any
) -> list[Pod]:
    """``count`` pods of one owner on a node."""
    return [a_pod(f"{prefix}{node}-{number}", node=node, owner=owner, **kwargs) for number in range(count)]
