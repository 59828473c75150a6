"""The law of convergence: in a still cluster complaints fall, the severest first, and runs end."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from planning.rounds import NOW, PLACE, SAFE, UNLIMITED, a_policy
from plimsoll.framework.descheduling.complaints import Complaining, Gravity, Vicinity
from plimsoll.planning.aftermath import settled
from plimsoll.planning.limits import Limits
from plimsoll.planning.moves import PlanningContext
from plimsoll.planning.proven.plan_builder import PlanBuilder
from trials.rounds import USUAL, rounds
from trials.starts import some_start

AROUND = PlanningContext(now=NOW)
HIGH = ("HighNodeUtilization", {"thresholds": {"cpu": 30}})
LAWFUL = settings(
    suppress_health_check=[HealthCheck.too_slow], max_examples=settings.default.max_examples // 3
)


def complaints(cluster: Any, policy: Any) -> tuple[float, ...]:
    """The amounts of all that the strategies of the policy complain of, the severest first."""
    context = PlanBuilder(policy, cluster, AROUND).context
    found = dict.fromkeys(sorted(Gravity, reverse=True), 0.0)
    for each in policy.strategies:
        if isinstance(each, Complaining):
            for complaint, amount in each.complaints(context).items():
                found[complaint.gravity] += amount
    return tuple(round(amount, 6) for amount in found.values())


@pytest.mark.parametrize("limits", [SAFE, UNLIMITED], ids=["safe", "unlimited"])
@LAWFUL
@given(seed=st.integers(0, 10**6), chosen=st.sets(st.sampled_from(range(len(USUAL) + 1)), min_size=1))
def test_complaints_fall_and_runs_end(limits: Limits, seed: int, chosen: set[int]) -> None:
    """Whatever strategies a policy has: each run lowers the severest of what its moves change."""
    strategies = [each for at, each in enumerate((*USUAL, HIGH)) if at in chosen]
    policy = a_policy(*strategies, limits=limits)
    cluster = some_start(seed)
    before = complaints(cluster, policy)

    for _ in range(100):
        story = rounds(cluster, policy, PLACE, AROUND, cycles=1, seed=seed)
        after = complaints(cluster, policy)
        assert (story.returned, story.pending, story.dropped, story.again) == ([], [], [], [])
        if not story.total:
            break
        assert after < before
        before = after
    else:
        pytest.fail("runs do not end")


@LAWFUL
@given(seed=st.integers(0, 10**6))
def test_what_a_strategy_says_near_a_move_is_what_it_says_of_all(seed: int) -> None:
    """The difference that a move makes is the same, looked at closely and over the whole cluster."""
    cluster = some_start(seed)
    policy = a_policy(*USUAL, HIGH, limits=UNLIMITED)
    pods = sorted(cluster.pods.values(), key=lambda pod: pod.key)
    pod = pods[seed % len(pods)]
    source = cluster.nodes[cluster.row_of_pod(pod.uid)].name  # type: ignore[index] # known to exist in this test
    target = cluster.nodes[seed % len(cluster)].name
    nodes = frozenset({source, target})

    def seen(strategy: Any, near: Any) -> dict[str, float]:
        context = PlanBuilder(policy, cluster, AROUND).context
        return dict(strategy.complaints(context, near))

    for strategy in policy.strategies:
        whole, close = seen(strategy, None), seen(strategy, Vicinity((pod,), nodes))
        cluster.displace(pod.uid)
        heir = settled(pod, cluster, target, NOW)
        cluster.place(heir, target)
        whole_after, close_after = seen(strategy, None), seen(strategy, Vicinity((heir,), nodes))
        cluster.displace(heir.uid)
        cluster.place(pod, source)

        def changes(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
            return {
                name: pytest.approx(after.get(name, 0) - before.get(name, 0))  # type: ignore[misc] # known in this test
                for name in before.keys() | after.keys()
                if abs(after.get(name, 0) - before.get(name, 0)) > 1e-9
            }

        assert changes(close, close_after) == changes(whole, whole_after), strategy.name
