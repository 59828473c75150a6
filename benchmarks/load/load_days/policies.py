"""The policies that are compared: profiles of the scheduler, and movers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from load_days.movers import LowNodeLoad, Mover, NoMoves, PlannedMoves, low_node_utilization
from load_days.readings import History
from load_days.score_plugins import BASELINES
from load_days.world import SCHEDULER, World
from plimsoll.engine.profile import Enabled, PluginSet, Profile, ProfileConfig, build_profile
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.load.readings import LoadSettings
from plimsoll.planning.moves import Goal, Objective
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS

#: Scores of kube-scheduler that place by requests; Trimaran's authors advise to switch them off with it.
BY_REQUESTS = ("NodeResourcesFit", "NodeResourcesBalancedAllocation")


def a_profile(
    *scores: tuple[str, int],
    args: Mapping[str, Mapping[str, object]] | None = None,
    without: tuple[str, ...] = (),
) -> Profile:
    """kube-scheduler's default profile with further plugins, and without the scores of some."""
    plugins = {
        "multiPoint": PluginSet(enabled=tuple(Enabled(name, weight) for name, weight in scores)),
        "score": PluginSet(disabled=frozenset(without)),
    }
    config = ProfileConfig(SCHEDULER, plugins=plugins, args=dict(args or {}))
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    return build_profile(config, Registry((*PLUGINS, *BASELINES)), defaults)


#: The load book with its default settings.
BOOK = LoadSettings()

MakeMover = Callable[[World, History, Profile], Mover]


def _no_moves(_world: World, _history: History, _profile: Profile) -> Mover:
    return NoMoves()


@dataclass(frozen=True, slots=True)
class ComparedPolicy:
    """One row of the tables.

    Attributes:
        line: Share of the cpu above which it wants pods off a node, or with ``by_deviation`` how far above
            the mean; by it a move is judged as wasted.
        book: How its load book is kept; None for a policy without.
        places_first: Whether it places the first pods, too, instead of the default profile.
    """

    key: str
    title: str
    profile: Callable[[], Profile]
    mover: MakeMover = _no_moves
    line: float = 0.8
    by_deviation: bool = False
    places_first: bool = False
    book: LoadSettings | None = None


def upstream(low: float, high: float, *, deviation: bool = False, taints: bool = False) -> MakeMover:
    """The LowNodeUtilization of descheduler by metrics, as planner Upstream decides."""

    def made(world: World, _history: History, profile: Profile) -> Mover:
        args = low_node_utilization(low, high, deviation=deviation)
        return PlannedMoves(
            world,
            {SCHEDULER: profile},
            [("LowNodeUtilization", args)],
            Planner.UPSTREAM,
            taints=taints,
            touched=False,
        )

    return made


def koordinator(low: float, high: float, *, deviation: bool = False) -> MakeMover:
    """LowNodeLoad together with LoadAwareScheduling."""

    def made(world: World, history: History, profile: Profile) -> Mover:
        return LowNodeLoad(world, history, profile, low, high, deviation)

    return made


def _packing(target: int) -> Callable[[], Profile]:
    def made() -> Profile:
        args = {"TargetLoadPacking": {"targetUtilization": target}}
        return a_profile(("TargetLoadPacking", 1), args=args, without=BY_REQUESTS)

    return made


def _risk() -> Profile:
    return a_profile(("LoadVariationRiskBalancing", 1), without=BY_REQUESTS)


def _koordinator() -> Profile:
    return a_profile(("LoadAwareScheduling", 1))


def _crane() -> Profile:
    return a_profile(("Dynamic", 3))


def _oracle(percentile: int) -> Callable[[], Profile]:
    def made() -> Profile:
        args = {"Oracle": {"percentile": percentile}}
        return a_profile(("Oracle", 100), args=args, without=BY_REQUESTS)

    return made


def _by_load(weight: int, *, without: tuple[str, ...] = (), **args: object) -> Callable[[], Profile]:
    def made() -> Profile:
        return a_profile(("NodeLoad", weight), args={"NodeLoad": args}, without=without)

    return made


def ours(
    planner: Planner, low: float, high: float, *, rounds: int = 3, goal: Goal | None = None
) -> MakeMover:
    """LowNodeUtilization by the load book, distances from the mean, while the profile places by the same."""

    def made(world: World, _history: History, profile: Profile) -> Mover:
        args = low_node_utilization(low, high, deviation=True)
        return PlannedMoves(
            world,
            {SCHEDULER: profile},
            [("LowNodeUtilization", args)],
            planner,
            goal=goal or Goal(),
            anomaly_rounds=rounds,
        )

    return made


POLICIES = {
    each.key: each
    for each in (
        ComparedPolicy("B0", "requests only", a_profile),
        ComparedPolicy("B1", "LowNodeUtilization 45/65, Upstream", a_profile, upstream(45, 65), 0.65),
        ComparedPolicy(
            "B1d", "the same, mean -5/+10", a_profile, upstream(5, 10, deviation=True), 0.1, by_deviation=True
        ),
        ComparedPolicy(
            "B2",
            "B1d with soft taint",
            a_profile,
            upstream(5, 10, deviation=True, taints=True),
            0.1,
            by_deviation=True,
        ),
        ComparedPolicy("B3", "TargetLoadPacking 40", _packing(40)),
        ComparedPolicy("B3b", "TargetLoadPacking 50", _packing(50)),
        ComparedPolicy("B4", "LoadVariationRiskBalancing", _risk),
        ComparedPolicy("B5", "Koordinator 65/95, LowNodeLoad 45/65", _koordinator, koordinator(45, 65), 0.65),
        ComparedPolicy(
            "B5d",
            "the same, mean -5/+10",
            _koordinator,
            koordinator(5, 10, deviation=True),
            0.1,
            by_deviation=True,
        ),
        ComparedPolicy("B6", "Crane Dynamic", _crane),
        ComparedPolicy("O", "oracle: future mean, no moves", _oracle(0), places_first=True),
        ComparedPolicy("O95", "oracle: future p95, no moves", _oracle(95), places_first=True),
    )
}


#: NodeLoad by cpu alone; keeping room for the largest pods of the trace; by cpu and memory, as it was first.
PLACED_BY_LOAD = _by_load(3, resourceWeights={"cpu": 1, "memory": 0})
KEEPING_ROOM = _by_load(3, resourceWeights={"cpu": 1, "memory": 0}, keepsRoomForCores=8)
BY_BOTH = _by_load(3, resourceWeights={"cpu": 1, "memory": 1})


def _proven(
    key: str,
    title: str,
    profile: Callable[[], Profile],
    *,
    rounds: int = 3,
    book: LoadSettings = BOOK,
) -> ComparedPolicy:
    return ComparedPolicy(
        key, title, profile, ours(Planner.PROVEN, 5, 10, rounds=rounds), 0.1, by_deviation=True, book=book
    )


#: Seconds of a search by load, which ends by steps long before.
BY_STEPS = 600.0


def _optimal(key: str, title: str, goal: Goal) -> ComparedPolicy:
    mover = ours(Planner.OPTIMAL, 5, 10, goal=goal)
    return ComparedPolicy(key, title, PLACED_BY_LOAD, mover, 0.1, by_deviation=True, book=BOOK)


#: Placed by the load book; and moved by it, too.
OURS = (
    ComparedPolicy("P1", "NodeLoad, weight 3, by cpu", PLACED_BY_LOAD, book=BOOK),
    _proven("P2", "P1 with LowNodeUtilization mean -5/+10, Proven", PLACED_BY_LOAD),
    _proven("P4", "P2, keepsRoomForCores 8", KEEPING_ROOM),
    _optimal("P3", "P2 with planner Optimal, movePrice 5", Goal(seconds=BY_STEPS, move_price=5.0)),
)

#: The same with one thing changed, most of them with resourceWeights of 1 and 1 ("m").
VARIANTS = (
    ComparedPolicy("P1m", "P1, resourceWeights cpu 1, memory 1", BY_BOTH, book=BOOK),
    ComparedPolicy("P1w1", "P1m, weight 1", _by_load(1, resourceWeights={"cpu": 1, "memory": 1}), book=BOOK),
    ComparedPolicy(
        "P1o",
        "P1m without the scores by requests",
        _by_load(3, without=BY_REQUESTS, resourceWeights={"cpu": 1, "memory": 1}),
        book=BOOK,
    ),
    ComparedPolicy(
        "P1n",
        "P1 without history and predecessors",
        PLACED_BY_LOAD,
        book=LoadSettings(uses_history=False),
    ),
    _proven("P2m", "P2, resourceWeights cpu 1, memory 1", BY_BOTH),
    _proven(
        "P2o",
        "P2m without the scores by requests",
        _by_load(3, without=BY_REQUESTS, resourceWeights={"cpu": 1, "memory": 1}),
    ),
    _proven(
        "P2f",
        "P2m, usageThresholds cpu 65, memory 95",
        _by_load(
            3,
            usageThresholds={"cpu": 65, "memory": 95},
            resourceWeights={"cpu": 1, "memory": 1},
        ),
    ),
    _optimal("P3p1", "P3, movePrice 1", Goal(seconds=BY_STEPS)),
    _optimal(
        "P3s", "P3, SmallestSpread, movePrice 10", Goal(Objective.SMALLEST_SPREAD, BY_STEPS, move_price=10.0)
    ),
    _proven("P2r1", "P2m, anomalyRounds 1", BY_BOTH, rounds=1),
    _proven("P2h33s", "P2m, half-life 33 s", BY_BOTH, book=LoadSettings(half_life_s=33.0)),
    _proven("P2h5m", "P2m, half-life 5 min", BY_BOTH, book=LoadSettings(half_life_s=300.0)),
    _proven("P2h30m", "P2m, half-life 30 min", BY_BOTH, book=LoadSettings(half_life_s=1_800.0)),
)

POLICIES |= {each.key: each for each in (*OURS, *VARIANTS)}
