"""Room for pending pods by programs over a few nodes, where moves on one node do not suffice."""

import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from planning.rounds import NOW, PLACE, UNLIMITED, a_policy
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PluginError
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.planning.limits import NO_CEILING, Ceiling, Limits
from plimsoll.planning.moves import EvictionPlan, Goal, PlanningContext, RebalancingConfig, replacement_of
from plimsoll.planning.planners import make_plan
from plimsoll.strategies.make_room_for_pending import MakeRoomForPending
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.columns import validate
from plimsoll_optimal import move_order as walk
from plimsoll_optimal import neighbourhoods
from plimsoll_optimal.milp import solve
from plimsoll_optimal.problem import Solution
from plimsoll_optimal.search_time import SearchTime

ROOM = "MakeRoomForPending"


def serving(planner: Planner = Planner.OPTIMAL, limits: Limits = UNLIMITED, **args: Any) -> RebalancingConfig:
    return a_policy(
        (ROOM, args), planner=planner, limits=limits, evictor={"minReplicas": 0}, goal=Goal(seconds=5.0)
    )


def mine(name: Any, node: Any, cpu: Any, **kwargs: Any) -> Pod:
    return a_pod(name, node=node, cpu=cpu, owner=f"ReplicaSet/{name}", **kwargs)


def a_row_of_moves() -> Cluster:
    """The pod of six on A fits B only when B's has gone to C: three nodes for one pod of ten.

    A: 10 - 6 = 4 free; B: 9 - 5 = 4; C: 10 - 5 = 5. No other pod may leave: C's fits neither A nor B.
    """
    nodes = [a_node("a", cpu="10"), a_node("b", cpu="9"), a_node("c", cpu="10")]
    pods = [mine("six", "a", "6"), mine("five", "b", "5"), mine("other", "c", "5")]
    return a_cluster(nodes, pods)


def around(*pods: Pod, cluster: Cluster) -> PlanningContext:
    return PlanningContext(NOW, unplaced=[cluster.templates.info(pod) for pod in pods])


def moved(made: EvictionPlan) -> list[tuple[str, ...]]:
    return [(move.pod.name, move.source, move.target) for move in made.moves]


def test_a_pod_is_served_by_moves_of_two_nodes_in_a_row() -> None:
    """Proven looks at one node at a time and finds nothing; the neighbourhood does, in the only order."""
    cluster = a_row_of_moves()
    then = around(a_pod("ten", cpu="10"), cluster=cluster)

    assert make_plan(serving(Planner.PROVEN), cluster, then).moves == ()
    made = make_plan(serving(), cluster, then)

    assert moved(made) == [("five", "b", "c"), ("six", "a", "b")]
    assert {(move.beneficiary.pod.name, move.beneficiary.node) for move in made.moves} == {("ten", "a")}
    assert len({move.bundle for move in made.moves}) == 1
    assert (made.optimisation.waiting, made.optimisation.served) == (1, 1)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"maxMovesPerPod": 1}, id="moves of a pod"),
        pytest.param({"limits": Limits(total=Ceiling(count=1), per_workload=NO_CEILING)}, id="the total"),
    ],
)
def test_a_limit_is_a_limit_here_too(given: dict[str, Any]) -> None:
    """Two moves are needed, one is allowed: none is made."""
    cluster = a_row_of_moves()

    made = make_plan(serving(**given), cluster, around(a_pod("ten", cpu="10"), cluster=cluster))

    assert made.moves == ()
    assert (made.optimisation.waiting, made.optimisation.served) == (1, 0)


def test_no_program_is_solved_when_the_total_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first that needs more than is left is the last; here another kind of pod waits, too."""
    programs = []

    def counted(*given: Any) -> Solution:
        programs.append(given)
        return solve(*given)

    monkeypatch.setattr(neighbourhoods, "solve", counted)
    cluster = a_row_of_moves()
    waiting = [a_pod("ten", cpu="10"), a_pod("more", cpu="10", priority=-1)]
    limits = Limits(total=Ceiling(count=1), per_workload=NO_CEILING)

    made = make_plan(serving(limits=limits), cluster, around(*waiting, cluster=cluster))

    assert (made.moves, len(programs)) == ((), 1)


def test_no_pod_moves_for_one_of_lower_priority() -> None:
    """The pod on B matters more than the one that waits."""
    cluster = a_row_of_moves()
    cluster.displace(next(uid for uid, pod in cluster.pods.items() if pod.name == "five"))
    cluster.place(cluster.templates.info(mine("five", "b", "5", priority=1)), "b")

    made = make_plan(serving(), cluster, around(a_pod("ten", cpu="10"), cluster=cluster))

    assert made.moves == ()


def test_two_that_would_only_change_places_stay() -> None:
    """Each fits where the other is, and nowhere else: no order of moves leads there."""
    nodes = [a_node("a", cpu="10"), a_node("b", cpu="9")]
    cluster = a_cluster(nodes, [mine("six", "a", "6"), mine("five", "b", "5")])

    made = make_plan(serving(), cluster, around(a_pod("half", cpu="4500m"), cluster=cluster))

    assert made.moves == ()


def test_a_strategy_that_cannot_say_who_waits_harms_itself_only() -> None:
    """The failure is named, the rest of the plan stands."""

    class Forgetful(MakeRoomForPending):
        asked = 0

        def waiting(self, context: Any) -> list[PodInfo]:
            type(self).asked += 1
            if self.asked > 1:
                raise RuntimeError("who?")
            return super().waiting(context)

    cluster = a_row_of_moves()
    policy = replace(serving(), strategies=[Forgetful(MakeRoomForPending.args_model())])

    made = make_plan(policy, cluster, around(a_pod("ten", cpu="10"), cluster=cluster))

    assert made.moves == ()
    (failure,) = made.failures
    assert isinstance(failure, PluginError)
    assert "who?" in str(failure)


class Ticking:
    """A clock that is a second later each time it is looked at."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return float(self.looks)


def an_endless_order(seconds: float) -> tuple[Any, dict[str, str]]:
    """Every pod of a full cluster may go anywhere, and none fits: the orders are too many to try."""
    names = [f"n{number}" for number in range(8)]
    placed = [
        a_pod(f"{name}-{number}", node=name, cpu="1", owner="ReplicaSet/web")
        for name in names
        for number in range(3)
    ]
    cluster = a_cluster([a_node(name, cpu="3") for name in names], placed)
    pods = list(cluster.pods.values())
    waits = cluster.templates.info(a_pod("waits", cpu="3"))
    anywhere = Counter(dict.fromkeys(names, 3))
    leaving = {pods[0].template: pods, waits.template: [waits]}
    homes: dict[str, str] = {pod.uid: pod.pod.node_name for pod in pods}
    setting = SimpleNamespace(
        unfolded=lambda _found: (leaving, {pods[0].template: anywhere, waits.template: Counter(n0=1)}),
        source_of=lambda pod: homes.get(pod.uid, ""),
    )
    book = SimpleNamespace(context=SimpleNamespace(cluster=cluster))
    time = SearchTime(seconds, Ticking())
    search = neighbourhoods._Unfolding(setting, book, serving(), Any, time)  # type: ignore[arg-type] # what it reads
    return search, homes


def test_the_search_for_an_order_ends_with_its_questions(monkeypatch: Any) -> None:
    """Whatever time is left."""
    search, homes = an_endless_order(1e9)
    counted: Counter[str] = Counter()
    send = neighbourhoods._Unfolding._send

    def counting(self: Any, *args: Any) -> bool:
        counted["moves"] += 1
        assert counted["moves"] <= neighbourhoods.QUESTIONS
        return send(self, *args)

    monkeypatch.setattr(neighbourhoods._Unfolding, "_send", counting)

    assert list(search.bundles()) == []
    assert {uid: pod.pod.node_name for uid, pod in search._fork.pods.items()} == homes
    assert search._questions == 0


def test_the_search_for_an_order_ends_with_its_time() -> None:
    """Whatever questions are left; the pods are where they were."""
    search, homes = an_endless_order(20)

    assert list(search.bundles()) == []
    assert {uid: pod.pod.node_name for uid, pod in search._fork.pods.items()} == homes
    assert neighbourhoods.QUESTIONS - 20 < search._questions < neighbourhoods.QUESTIONS


@pytest.mark.parametrize(
    ("tries", "seconds", "expected"),
    [
        pytest.param(2, 1e9, 60, id="by its tries: two for each of thirty pods"),
        pytest.param(10, 45, 43, id="by its time"),
        pytest.param(10, 0, 0, id="without any time"),
    ],
)
def test_a_walk_ends(tries: int, seconds: float, expected: int, monkeypatch: Any) -> None:
    """Each pass over the pods finds one move, the last one: within a pass both bounds are looked at."""
    monkeypatch.setattr(walk, "TRIES", 0)
    monkeypatch.setattr(walk, "TRIES_A_POD", tries)
    cluster = a_cluster([a_node("a", cpu="99")], [mine(f"p{number}", "a", "1") for number in range(30)])
    left = list(cluster.pods.values())
    setting = SimpleNamespace(unfolded=lambda _found: ({"web": left}, {"web": Counter(b=99)}))
    tried: list[PodInfo] = []

    def step(pod: PodInfo, *_: Any) -> bool:
        tried.append(pod)
        return pod is left[-1]

    monkeypatch.setattr(walk, "_step", step)

    book: Any = SimpleNamespace(moves=[])
    walk.walk_to(Any, setting, book, {}, SearchTime(seconds, Ticking()))  # type: ignore[arg-type] # what it reads

    assert len(tried) == expected


@pytest.mark.parametrize(
    ("seconds", "solved"),
    [
        pytest.param(1, 0, id="over before the first program"),
        pytest.param(4, 1, id="over after the first"),
        pytest.param(1e9, 2, id="as many as there are"),
    ],
)
def test_neighbourhoods_are_searched_within_the_time(seconds: float, solved: int, monkeypatch: Any) -> None:
    """None of the programs finds anything, and the clock is a second later at each look."""
    programs = []

    def solve(problem: Any, within: float, _start: Any = None) -> Solution:
        programs.append(within)
        nothing = np.zeros(len(problem.stocks), dtype=np.int64)
        return Solution(nothing, np.zeros_like(problem.most), 1.0, 0.0, 0.0)

    monkeypatch.setattr(neighbourhoods, "solve", solve)
    cluster = a_row_of_moves()
    context = replace(around(a_pod("ten", cpu="10"), cluster=cluster), monotonic=Ticking())

    make_plan(replace(serving(), goal=Goal(seconds=seconds)), cluster, context)

    assert len(programs) == solved


@pytest.mark.parametrize("seed", range(6))
def test_every_move_and_every_place_is_feasible_in_its_turn(seed: int) -> None:
    """On crowded clusters: as many are served as by Proven at least, and each finds its room."""
    rng = random.Random(seed)
    nodes = [a_node(f"n{n}", cpu=str(rng.choice([6, 8, 10]))) for n in range(6)]
    cluster = a_cluster(nodes, [])
    scheduler = ProfileScheduler(serving().profiles[PLACE], cluster)
    waiting = []
    for number in range(30):
        asks = {"cpu": str(rng.randint(1, 5)), "priority": rng.choice([0, 0, 1])}
        pod = mine(f"p{number}", "", **asks)
        if fit := scheduler.rank(cluster.templates.info(pod)).nodes:
            node = rng.choice(fit)
            cluster.place(cluster.templates.info(mine(f"p{number}", node, **asks)), node)
        else:
            waiting.append(pod)
    then = around(*waiting, cluster=cluster)

    served = {
        planner: {move.beneficiary.pod.uid for move in make_plan(serving(planner), cluster, then).moves}
        for planner in (Planner.PROVEN, Planner.OPTIMAL)
    }
    made = make_plan(serving(), cluster, then)

    assert len(served[Planner.OPTIMAL]) >= len(served[Planner.PROVEN])
    ends = {move.bundle: move for move in made.moves}
    for move in made.moves:
        assert move.beneficiary.pod.priority >= move.pod.priority
        cluster.displace(move.pod.uid)
        fresh = replacement_of(move.pod, cluster)
        assert move.target in scheduler.rank(fresh).nodes
        cluster.place(replacement_of(move.pod, cluster, move.target), move.target)
        if ends[move.bundle] is move:
            assert move.beneficiary.node in scheduler.rank(move.beneficiary.pod).nodes
            cluster.place(move.beneficiary.pod, move.beneficiary.node)
        validate(cluster)
