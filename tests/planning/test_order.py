"""A decision does not depend on the order in which nodes became known, beyond ties that it declares."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.test_incremental import PROFILE, judged
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.testing.builders import a_cluster
from plimsoll.testing.drawn_worlds import some_cluster, some_pod

LAWFUL = settings(suppress_health_check=list(HealthCheck))


def best(scheduler: ProfileScheduler, pod: Pod) -> set[str]:
    """The names of the nodes that the scheduler may choose."""
    return set(scheduler.rank(scheduler.cluster.templates.info(pod)).best)


@LAWFUL
@given(some_cluster(), some_pod(), st.randoms())
def test_verdicts_points_and_sentences_are_the_same_in_any_order(
    drawn: tuple[list[Node], list[Pod]], pod: Pod, random: Any
) -> None:
    """Of every node, by all default plugins; and so are the number of ties and the nodes that tie."""
    nodes, pods = drawn
    one = ProfileScheduler(PROFILE, a_cluster(nodes, pods))
    other = ProfileScheduler(
        PROFILE, a_cluster(random.sample(nodes, len(nodes)), random.sample(pods, len(pods)))
    )

    first, second = (schedule(each, each.cluster.templates.info(pod)) for each in (one, other))

    assert judged(one, pod) == judged(other, pod)
    assert (first.outcome, first.message, first.total) == (second.outcome, second.message, second.total)
    assert (first.feasible, first.ties) == (second.feasible, second.ties)
    if first.outcome is AttemptOutcome.SCHEDULED:
        assert best(one, pod) == best(other, pod)
        assert {first.node, second.node} <= best(one, pod)
        assert first.total is None or len(best(one, pod)) == first.ties


@LAWFUL
@given(some_cluster(), some_pod(), st.randoms())
def test_a_declared_choice_is_all_that_order_leaves_open(
    drawn: tuple[list[Node], list[Pod]], pod: Pod, random: Any
) -> None:
    """Where the random choice picks the same name among the tied, the same node is taken."""
    nodes, pods = drawn
    clusters = [a_cluster(nodes, pods), a_cluster(random.sample(nodes, len(nodes)), pods)]
    taken = []
    for cluster in clusters:
        plain = ProfileScheduler(PROFILE, cluster)
        # Ties are offered in the order of rows: choose the one whose name comes first.
        in_row_order = [node.name for node in cluster.nodes if node.name in best(plain, pod)]

        def choose(count: Any, in_row_order: Any = in_row_order) -> Any:
            assert count == len(in_row_order)
            return in_row_order.index(min(in_row_order))

        taken.append(schedule(ProfileScheduler(PROFILE, cluster, choose), cluster.templates.info(pod)).node)

    assert taken[0] == taken[1]
