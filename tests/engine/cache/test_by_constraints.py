"""Answers that templates of equal constraints on nodes share equal those that each of them gets alone."""

from collections import defaultdict
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import Decision
from plimsoll.engine.plugin_calls import METER, PluginCalls
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.model.kinds.pod import Container, Pod, ResourceRequirements
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.testing.builders import a_cluster
from plimsoll.testing.drawn_worlds import LAWFUL, some_cluster, some_nodes, some_pod

PROFILE = build_profile(
    ProfileConfig("default-scheduler"),
    Registry(IN_TREE),
    [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
)
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.integers(0, 3))


def another(pod: Pod, label: str, amounts: dict[str, Any]) -> Pod:
    """A pod of the same constraints on nodes."""
    metadata = msgspec.structs.replace(pod.metadata, labels={"app": label}, owner_references=())

    def asking(container: Container) -> Container:
        return msgspec.structs.replace(
            container, name=f"x-{container.name}", resources=ResourceRequirements(requests=amounts)
        )

    containers = tuple(asking(each) for each in pod.spec.containers)
    affinity = pod.spec.affinity and msgspec.structs.replace(
        pod.spec.affinity, pod_affinity=None, pod_anti_affinity=None
    )
    spec = msgspec.structs.replace(
        pod.spec, containers=containers, affinity=affinity, topology_spread_constraints=()
    )
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec)


def told(scheduler: ProfileScheduler, pod: Pod) -> tuple[object, ...]:
    """All that a decision says, and each node's verdict and points."""
    info = scheduler.cluster.templates.info(pod)
    decision: Decision = schedule(scheduler, info)
    found = scheduler.evaluate(info)
    table = found.scores
    return (
        (decision.outcome, decision.node, decision.total, decision.feasible, decision.ties, decision.message),
        (found.pre_filter, dict(found.statuses), found.feasible),
        None if table is None else (table.plugins, [each.tolist() for each in (*table.raw, table.totals)]),
    )


@LAWFUL
@given(
    some_cluster(),
    st.lists(some_pod(), min_size=1, max_size=2),
    st.lists(st.tuples(st.sampled_from("ab"), AMOUNTS), min_size=1, max_size=4),
    some_nodes(),
)
def test_shared_answers_equal_unshared_ones(
    drawn: Any, asked: list[Pod], others: list[Any], later: Any
) -> None:
    """Templates in turn, nodes that change in between; a timed attempt shares nothing, and says the same."""
    scheduler = ProfileScheduler(PROFILE, a_cluster(*drawn))
    alone = ProfileScheduler(PROFILE, a_cluster(*drawn))
    timed = PluginCalls(counts=defaultdict(int), clock=lambda: 0.0)
    for changed in ((), later):
        for node in changed:
            scheduler.cluster.set_node(node)
            alone.cluster.set_node(node)
        for pod in asked:
            siblings = [another(pod, *other) for other in others]
            constraints = {
                scheduler.cluster.templates.info(each).template.constraints for each in (pod, *siblings)
            }
            assert len(constraints) == 1
            for each in (pod, *siblings):
                token = METER.set(timed)
                expected = told(alone, each)
                METER.reset(token)
                assert told(scheduler, each) == expected
