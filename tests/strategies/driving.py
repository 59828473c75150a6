"""Running a strategy alone: everything it proposes is accepted and leaves, as in upstream's own tests."""

from datetime import UTC, datetime

from plimsoll.framework.descheduling.context import (
    Measurements,
    Planner,
    StrategyContext,
    UnplacedPods,
    considered_nodes,
)
from plimsoll.framework.descheduling.strategy import Verdict
from plimsoll.planning.strategy_run import run_strategy
from plimsoll.strategies.default_evictor import DefaultEvictor, DefaultEvictorArgs
from plimsoll.testing.builders import a_cluster, a_pod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def an_evictor(**args):
    return DefaultEvictor(DefaultEvictorArgs.model_validate(args))


def a_context(nodes, pods=(), *, evictor=None, exact=True, only=None, measurements=None, objects=None):
    cluster = a_cluster(nodes, [pod for pod in pods if not pod.is_terminal])
    for kind, values in (objects or {}).items():
        getattr(cluster.objects, kind).update(values)
    ended = [cluster.templates.info(pod) for pod in pods if pod.is_terminal or not pod.spec.node_name]
    names = considered_nodes(cluster)
    return StrategyContext(
        cluster=cluster,
        nodes=tuple(name for name in names if only is None or name in only),
        now=NOW,
        evictors=(evictor or an_evictor(),),
        planner=Planner.UPSTREAM if exact else Planner.PROVEN,
        unplaced=UnplacedPods(ended),
        measurements=measurements or Measurements(),
    )


def evicted(strategy, context, *, per_node=None):
    """Names of the pods that go when all are accepted, in order; ``per_node``: the node limit."""
    names, by_node = [], {}

    def judge(candidate):
        count = by_node.get(candidate.node, 0)
        if per_node is not None and count >= per_node:
            return Verdict.NODE_CLOSED
        by_node[candidate.node] = count + 1
        names.append(candidate.pod.name)
        context.cluster.displace(candidate.pod.uid)
        context.unplaced.discard(candidate.pod.uid)
        return Verdict.ACCEPTED

    run_strategy(strategy, context, judge)
    return names


def a_strategy(kind, **args):
    return kind(kind.args_model.model_validate(args))


def pods_on(node, count, *, prefix="", owner="ReplicaSet/web", **kwargs):
    """``count`` pods of one owner on a node."""
    return [a_pod(f"{prefix}{node}-{number}", node=node, owner=owner, **kwargs) for number in range(count)]
