"""Pods that stand and fall together, and pods that are sent to a node of the strategy's choice."""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from planning.builders import NOW, SURROUNDINGS, a_rebalancing, reasons, targets
from planning.proven.test_planner import READY, a_budget
from plimsoll.framework import NoArgs
from plimsoll.framework.descheduling.proposals import Beneficiary, Bundle, Candidate, Refusal, Verdict
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import ContainerStatus, Pod, PodCondition, ResourceRequirements
from plimsoll.planning.limits import NO_CEILING, Ceiling, Limits
from plimsoll.planning.moves import EvictionPlan, PlanningContext
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.planning.proven.planner import revalidate
from plimsoll.testing.builders import a_cluster, a_node, a_pod

FREE = Limits(per_workload=NO_CEILING)


class Sends:
    """Proposes pods with targets, all together or one by one; notes the verdicts."""

    name: ClassVar = "Sends"
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = NoArgs

    def __init__(self, *, together: bool = True, one_by_one: bool = False, **sent: Any) -> None:
        self.together = together
        self.one_by_one = one_by_one
        self.sent = sent
        self.verdicts: list[Any] = []

    def candidates(self, context: Any) -> Iterator[Bundle | Candidate]:
        pods = {pod.name: pod for pod in context.cluster.pods.values()}
        candidates = tuple(
            Candidate(pods[name], context.node_of(pods[name]), "it is sent", target)
            for name, target in self.sent.items()
        )
        for proposal in [Bundle(candidates, one_by_one=self.one_by_one)] if self.together else candidates:
            self.verdicts.append((yield proposal))


def a_scene() -> Cluster:
    """Three pods of a core on a large node; two half full ones that take one each."""
    pods = [a_pod(f"p{n}", cpu="1", node="large", owner=f"ReplicaSet/r{n}") for n in range(3)]
    pods += [a_pod(f"fills-{name}", cpu="1", node=name) for name in ("one", "two")]
    nodes = [a_node("large", cpu="9"), a_node("one", cpu="2"), a_node("two", cpu="2")]
    return a_cluster(nodes, pods)


def planned(strategy: Sends, cluster: Cluster | None = None, limits: Limits = FREE) -> EvictionPlan:
    return plan(a_rebalancing(strategy, limits=limits), cluster or a_scene(), SURROUNDINGS)


def test_a_pod_is_sent_where_the_strategy_wants_it() -> None:
    """The large node would win by score; the target is feasible, and that is what is asked."""
    found = planned(Sends(p0="one"))

    (move,) = found.moves
    assert (move.target, move.is_directed, move.ties) == ("one", True, 1)
    assert move.gain < 0  # type: ignore[operator] # known to exist in this test


@pytest.mark.parametrize(
    ("sent", "reason"), [({"p0": "large"}, "NoOtherNode"), ({"p0": "nowhere"}, "NotFeasible")]
)
def test_a_target_that_cannot_be_is_refused(sent: dict[str, Any], reason: str) -> None:
    """Its own node, a node that is not there."""
    assert reasons(planned(Sends(**sent))) == {"p0": reason}


def test_a_pod_of_another_scheduler_cannot_be_sent() -> None:
    """That scheduler takes no target node."""
    cluster = a_cluster(
        [a_node("large"), a_node("one")],
        [a_pod("p0", node="large", owner="ReplicaSet/r0", schedulerName="somebody")],
    )

    assert reasons(planned(Sends(p0="one"), cluster)) == {"p0": "OtherScheduler"}


def test_all_of_a_bundle_go() -> None:
    """Each was proved with those before it made; they bear the same mark."""
    strategy = Sends(p0="one", p1="two")

    found = planned(strategy, limits=Limits(per_node=Ceiling(count=1)))

    assert targets(found) == {"p0": "one", "p1": "two"}  # the limit for a node is not theirs
    assert len({move.bundle for move in found.moves}) == 1
    assert found.moves[0].bundle


def test_pods_of_one_owner_that_go_in_turn_count_once() -> None:
    """The limit of their workload and their budget allow one pod; the second waits for the first."""
    labels = {"app": "web"}
    pods = [
        a_pod(f"p{n}", cpu="1", node="large", owner="ReplicaSet/r", labels=labels, status=READY)
        for n in range(2)
    ]
    cluster = a_cluster([a_node("large", cpu="9"), a_node("one", cpu="2"), a_node("two", cpu="2")], pods)
    budget = a_budget(allowed=1, selector=labels)
    cluster.objects.budgets[budget.key] = budget

    found = planned(Sends(one_by_one=True, p0="one", p1="two"), cluster, Limits())

    assert [(move.target, move.waits, move.budget) for move in found.moves] == [
        ("one", False, budget.key),
        ("two", True, budget.key),
    ]


def test_none_of_a_bundle_goes_when_one_must_stay() -> None:
    """What was booked for the others is taken back: a later proposal finds the room."""
    cluster = a_scene()

    found = plan(
        a_rebalancing(Sends(p0="one", p1="one"), Sends(together=False, p2="one"), limits=FREE),
        cluster,
        SURROUNDINGS,
    )

    assert targets(found) == {"p2": "one"}
    assert reasons(found) == {"p0": "NotAll", "p1": "NotFeasible"}
    messages = {each.pod.name: each.refusal.message for each in found.refused}
    assert messages["p0"].startswith("it goes only with others, and pod default/p1 must stay: node one")


def test_limits_count_a_bundle_that_was_taken_back_for_nothing() -> None:
    """Two of the three allowed would have been used up by the bundle."""
    found = plan(
        a_rebalancing(
            Sends(p0="one", p1="one"),
            Sends(together=False, p1="one", p2="two"),
            limits=Limits(total=Ceiling(count=2), per_workload=NO_CEILING),
        ),
        a_scene(),
        SURROUNDINGS,
    )

    assert targets(found) == {"p1": "one", "p2": "two"}


def test_a_budget_that_a_bundle_would_have_used_is_left_when_it_is_taken_back() -> None:
    """One disruption is allowed: the pod of the bundle stays, so another one may have it."""
    cluster = a_scene()
    covered = {"labels": {"app": "web"}, "status": READY}
    for name in ("p0", "p2"):
        pod = a_pod(name, cpu="1", node="large", owner=f"ReplicaSet/r{name[1]}", **covered)  # type: ignore[arg-type] # fields as in the API
        cluster.place(cluster.templates.info(pod), "large")
    budget = a_budget(allowed=1, selector={"app": "web"})
    cluster.objects.budgets[budget.key] = budget

    found = plan(
        a_rebalancing(Sends(p0="one", p1="one"), Sends(together=False, p2="one", p0="two"), limits=FREE),
        cluster,
        SURROUNDINGS,
    )

    assert targets(found) == {"p2": "one"}
    assert [(each.pod.name, each.refusal.reason) for each in found.refused] == [
        ("p0", "NotAll"),
        ("p1", "NotFeasible"),
        ("p0", "Budget"),
    ]


def test_a_bundle_beyond_the_total_ends_the_cycle() -> None:
    """Nothing of it goes, and nothing after it is asked."""
    found = planned(Sends(p0="one", p1="two"), limits=Limits(total=Ceiling(count=1), per_workload=NO_CEILING))

    assert targets(found) == {}
    assert reasons(found) == {"p0": "NotAll", "p1": "TotalLimit"}


def test_right_before_the_eviction_the_target_is_asked_for_again() -> None:
    """Still feasible, still the move; taken by somebody, no move."""
    cluster = a_scene()
    rebalancing = a_rebalancing(Sends(p0="one"), limits=FREE)
    (move,) = plan(rebalancing, cluster, SURROUNDINGS).moves

    again = revalidate(move, rebalancing, cluster, PlanningContext(now=NOW))
    assert (again.target, again.is_directed) == ("one", True)
    cluster.place(cluster.templates.info(a_pod("thief", cpu="1", node="one")), "one")
    refused = revalidate(move, rebalancing, cluster, PlanningContext(now=NOW))
    assert isinstance(refused, Refusal)
    assert refused.reason == "NotFeasible"


class MakesRoom(Sends):
    """The same, for a pending pod on a node."""

    name: ClassVar = "MakesRoom"

    def __init__(self, pending: str, node: str, **sent: Any) -> None:
        super().__init__(**sent)
        self.pending, self.node = pending, node

    def candidates(self, context: Any) -> Iterator[Bundle]:
        for bundle in super().candidates(context):
            (pod,) = [each for each in context.unplaced.pending() if each.name == self.pending]
            self.verdicts.append((yield Bundle(bundle.candidates, Beneficiary(pod, self.node))))
            self.waiting = [each.name for each in context.unplaced.pending()]


def room_made(strategy: MakesRoom, *pending: Pod, **kwargs: Any) -> EvictionPlan:
    cluster = a_scene()
    planning_context = PlanningContext(NOW, unplaced=[cluster.templates.info(pod) for pod in pending])
    return plan(a_rebalancing(strategy, limits=FREE, **kwargs), cluster, planning_context)


def test_a_bundle_for_a_pending_pod_is_booked_with_its_room() -> None:
    """Nine of nine cores: 6 are free on the large node, 7 are wanted. Whose room it is waits no longer."""
    strategy = MakesRoom("big", "large", p0="one")

    found = room_made(strategy, a_pod("big", cpu="7"), a_pod("other", cpu="7"))

    (move,) = found.moves
    assert (move.beneficiary.pod.name, move.beneficiary.node) == ("big", "large")
    assert strategy.waiting == ["other"]


@pytest.mark.parametrize(
    ("pending", "why"),
    [
        (a_pod("big", cpu="8"), "pod default/big would still not fit node large"),
        (a_pod("big", cpu="7", priority=-1), "pod default/p0 has a higher priority than pod default/big"),
        (
            a_pod("big", cpu="7", schedulerName="x"),
            "pod default/big is not pending, or no SchedulingPolicy serves its scheduler",
        ),
    ],
)
def test_a_bundle_that_does_not_help_its_pending_pod_is_taken_back(pending: Pod, why: str) -> None:
    """Seven cores would be free; moving for less important pods is never right; nor for somebody else's."""
    strategy = MakesRoom("big", "large", p0="one")

    found = room_made(strategy, pending)

    assert found.moves == ()
    (refused,) = found.refused
    assert (refused.pod.name, refused.refusal) == ("p0", Refusal("NoRoomMade", why))
    assert strategy.waiting == ["big"]


def test_no_room_is_made_on_a_node_that_is_to_be_emptied() -> None:
    found = room_made(
        MakesRoom("big", "large", p0="one"), a_pod("big", cpu="7"), leaving=frozenset(("large",))
    )

    assert [each.refusal for each in found.refused] == [Refusal("NoRoomMade", "node large is to be emptied")]


@pytest.mark.parametrize("empties", [True, False])
def test_a_node_that_the_plan_empties_is_filled_by_no_later_proposal(empties: bool) -> None:
    class Empties(Sends):
        name: ClassVar = "Empties"
        empties_nodes: ClassVar = empties

    pods = [a_pod(name, cpu="1", node=node) for name, node in (("p0", "old"), ("p1", "full"))]
    cluster = a_cluster([a_node(name, cpu="9") for name in ("old", "full", "other")], pods)

    made = plan(a_rebalancing(Empties(p0="other"), Sends(p1="old"), limits=FREE), cluster, SURROUNDINGS)

    assert targets(made) == {"p0": "other"} | ({} if empties else {"p1": "old"})
    assert [each.refusal.message for each in made.refused] == ["node old is to be emptied"] * empties


class MakesRoomToGrow(Sends):
    """Proposes moves for a pod whose resize waits, in favour of a node."""

    name: ClassVar = "MakesRoomToGrow"

    def __init__(self, node: str, **sent: Any) -> None:
        super().__init__(**sent)
        self.node = node

    def candidates(self, context: Any) -> Iterator[Bundle]:
        (pod,) = [each for each in context.cluster.pods.values() if each.name == "grows"]
        for bundle in super().candidates(context):
            self.verdicts.append((yield Bundle(bundle.candidates, Beneficiary(pod, self.node))))


NOT_WAITING = "pod default/grows does not wait for a resize on node {}"
UNDER_WAY = "moves off or to node large are still under way"


@pytest.mark.parametrize(
    ("node", "cpu", "why_pending", "moved_s_ago", "refusal"),
    [
        pytest.param("large", "6", "Deferred", None, "", id="it waits, and 7 are free once p0 has left"),
        pytest.param("large", "6", "Deferred", 1.5, "", id="a move of long ago"),
        pytest.param("large", "6", "Deferred", 1.0, UNDER_WAY, id="a move of just now"),
        pytest.param("one", "6", "Deferred", None, NOT_WAITING.format("one"), id="on another node"),
        pytest.param("large", "6", "Infeasible", None, NOT_WAITING.format("large"), id="never granted"),
        pytest.param("one", "6", "Infeasible", None, NOT_WAITING.format("one"), id="neither"),
        pytest.param(
            "large",
            "8",
            "Deferred",
            None,
            "the resize of pod default/grows would still not fit node large",
            id="too large",
        ),
    ],
)
def test_a_bundle_for_a_resize_helps_it_or_is_taken_back(
    node: str, cpu: str, why_pending: str, moved_s_ago: float | None, refusal: str
) -> None:
    """Nine cores, two of them used by others once p0 has left: 7 at most."""
    grows = a_pod("grows", cpu=cpu, node="large", owner="ReplicaSet/grows")
    shown = ContainerStatus(
        name=grows.spec.containers[0].name,
        resources=ResourceRequirements(requests={"cpu": "1"}),
        allocated_resources={"cpu": "1"},
    )
    waits = PodCondition(type="PodResizePending", status="True", reason=why_pending)
    status = replace(grows.status, conditions=(waits,), container_statuses=(shown,))
    cluster = a_scene()
    cluster = a_cluster(
        cluster.nodes, [each.pod for each in cluster.pods.values()] + [replace(grows, status=status)]
    )
    touched = {} if moved_s_ago is None else {"large": NOW.timestamp() - moved_s_ago}
    strategy = MakesRoomToGrow(node, p0="one")

    found = plan(a_rebalancing(strategy, limits=FREE), cluster, PlanningContext(NOW, touched=touched))

    assert targets(found) == ({} if refusal else {"p0": "one"})
    assert [each.refusal for each in found.refused] == ([Refusal("NoRoomMade", refusal)] if refusal else [])


def test_who_was_given_room_is_not_moved_in_the_same_plan() -> None:
    """It counts as placed, and is not there yet."""
    second = Sends(big="two")
    cluster = a_scene()
    pending = [cluster.templates.info(a_pod("big", cpu="1"))]
    rebalancing = a_rebalancing(MakesRoom("big", "large", p0="one"), second, limits=FREE)

    found = plan(rebalancing, cluster, PlanningContext(NOW, unplaced=pending))

    assert targets(found) == {"p0": "one"}
    assert second.verdicts == [Verdict.REFUSED]
