"""Compares exchanges of LowNodeUtilization by load with lists and loops, for any verdicts of the planner.

Single pods are answered first; then each exchange is, and what is accepted has moved when the next is sought.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.framework.descheduling.proposals import Bundle, Verdict
from plimsoll.load.readings import LoadReading, LoadReadings
from plimsoll.model.taints import UNHEALTHY
from plimsoll.planning.strategy_run import run_strategy
from plimsoll.strategies.low_node_utilization import LowNodeUtilization
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.usage.load_keeper import LoadKeeper
from strategies.builders import a_context, a_strategy

#: Worlds in one example.
EACH = 10

MILLI, MIB = 10**6, 2**20
RESOURCES = ("cpu", "memory")

#: Of each node, in milli and Mi; and the distance of targets from the line, in percent.
ROOM, BAND = {"cpu": 10_007, "memory": 20_011}, 5

#: The most small pods of an exchange; large pods looked at, exchanges, and under-used nodes looked at.
MOST, LOOKED_AT, PROPOSED, COOLEST = 3, 8, 3, 16

Amounts = Mapping[str, int]


@dataclass(eq=False)
class Plain:
    """A pod, with what it requests and uses in milli and Mi; ``node`` is "" once it has left."""

    name: str
    node: str
    asks: Amounts
    uses: Amounts
    priority: int
    owner: str = "ReplicaSet/web"
    namespace: str = "default"

    @property
    def may_leave(self) -> bool:
        """Whether nothing protects it."""
        return self.owner == "ReplicaSet/web" and self.namespace == "default"


@dataclass
class World:
    """Pods and nodes, of which some are no targets; and the lines in percent."""

    pods: list[Plain]
    nodes: list[str]
    no_targets: set[str]
    low: Amounts
    high: Amounts
    cordoned: set[str] = field(default_factory=set)

    def on(self, node: str) -> list[Plain]:
        """The pods of a node."""
        return [each for each in self.pods if each.node == node]

    def used(self, node: str) -> dict[str, int]:
        """What they use."""
        return {name: sum(each.uses[name] for each in self.on(node)) for name in RESOURCES}

    def is_over(self, used: Amounts) -> bool:
        """Whether that is above the line in any resource."""
        return any(used[name] > line / 100 * ROOM[name] for name, line in self.high.items())


@dataclass
class Source:
    """An over-used node during a run: what it still uses, and whether the planner has closed it."""

    name: str
    used: dict[str, int]
    is_closed: bool = False


@dataclass
class Exchange:
    """Small pods that leave, the large one, and where it goes."""

    small: list[Plain]
    large: Plain
    target: str

    @property
    def said(self) -> tuple[list[str], str, str]:
        """In names."""
        return [each.name for each in self.small], self.large.name, self.target


def share(amounts: Amounts) -> float:
    """The largest share of a node."""
    return max(amounts[name] / ROOM[name] for name in RESOURCES)


def wanted(world: World, source: Source) -> list[Plain]:
    """Pods of an over-used node: the smallest that suffices first, then the largest."""
    excess = {name: source.used[name] - line / 100 * ROOM[name] for name, line in world.high.items()}

    def rank(pod: Plain) -> tuple[int, bool, float]:
        covered = min((pod.uses[name] / much for name, much in excess.items() if much > 0), default=0.0)
        return pod.priority, covered < 1, covered if covered >= 1 else -covered

    return sorted(filter(lambda each: each.may_leave, world.on(source.name)), key=rank)[:LOOKED_AT]


def leaving(world: World, node: str, large: Plain) -> list[Plain] | None:
    """The small pods that make room on a node: each time the one that covers most of what is missing."""
    asked = {name: sum(each.asks[name] for each in world.on(node)) for name in RESOURCES}
    lack = {name: large.asks[name] - (ROOM[name] - asked[name]) for name in RESOURCES}
    small = [
        each
        for each in world.on(node)
        if each.may_leave and each.priority <= large.priority and share(each.uses) < share(large.uses)
    ]
    chosen: list[Plain] = []
    while any(much > 0 for much in lack.values()):
        missing = {name: much for name, much in lack.items() if much > 0}
        if not small or len(chosen) == MOST:
            return None

        def rank(pod: Plain, missing: Amounts = missing) -> tuple[float, float, int]:
            covered = sum(min(pod.asks[name], much) / much for name, much in missing.items())
            return -covered, share(pod.uses), pod.priority

        best = min(small, key=rank)
        small.remove(best)
        chosen.append(best)
        lack = {name: much - best.asks[name] for name, much in lack.items()}
    return chosen


def an_exchange(world: World, under: list[str], large: Plain) -> Exchange | None:
    """The best exchange for a large pod: the fewest leave, then those that use least."""
    found = []
    for node in sorted(under, key=lambda name: (share(world.used(name)), name))[:COOLEST]:
        small = leaving(world, node, large)
        if not small or node in world.no_targets:
            continue
        more = {name: large.uses[name] - sum(each.uses[name] for each in small) for name in RESOURCES}
        then = {name: much + more[name] for name, much in world.used(node).items()}
        stays_cool = all(then[name] <= (line - BAND) / 100 * ROOM[name] for name, line in world.high.items())
        if stays_cool and any(much > 0 for much in more.values()):
            found.append((len(small), -share(more), node, Exchange(small, large, node)))
    return min(found, key=lambda each: each[:3])[-1] if found else None


def exchanges(world: World, under: list[str], sources: list[Source]) -> Iterator[Exchange]:
    """Node by node, until it is below its target; the caller moves what is accepted."""
    for source in sources:
        proposed = 0
        for large in [] if source.is_closed else wanted(world, source):
            if not world.is_over(source.used) or proposed == PROPOSED:
                break
            found = an_exchange(world, under, large)
            if found is not None:
                proposed += 1
                yield found


# -- worlds ------------------------------------------------------------------------------------------------


def shared_out(draw: random.Random, much: int, many: int) -> list[int]:
    """An amount in parts of any size, at least 1 each; sometimes equal ones."""
    if draw.random() < 0.2:
        return [much // many] * many
    cuts = [0, *sorted(draw.sample(range(1, much), many - 1)), much]
    return [after - before for before, after in pairwise(cuts)]


def a_world(draw: random.Random) -> World:
    """One or two nodes that use too much, and others that are nearly full by requests and use little."""
    hot, cool = draw.choice((1, 1, 2)), draw.choice((1, 2, 3, 18, 18))
    nodes = [f"n{number:02}" for number in range(hot + cool)]
    draw.shuffle(nodes)
    world = World([], nodes, set(), {"cpu": 45, "memory": 45}, {"cpu": 60, "memory": 60})
    for number, node in enumerate(nodes):
        is_hot, main = number < hot, draw.choice(RESOURCES)
        many = draw.choice((2, 3, 5, 12, 12)) if is_hot else draw.choice((2, 4, 7, 9))
        # What is used by more than 90 percent of the cpu is expected to use more than that.
        percent = {
            name: draw.randrange(62, 89) if name == main else draw.randrange(10, 89) for name in RESOURCES
        }
        if not is_hot:
            percent = {name: draw.randrange(1, 46) for name in RESOURCES}
        uses = {name: shared_out(draw, ROOM[name] * percent[name] // 100, many) for name in RESOURCES}
        asks = {
            name: shared_out(draw, ROOM[name] * draw.randrange(70, 101) // 100, many) for name in RESOURCES
        }
        for each in range(many):
            pod = Plain(
                f"{node}-{each:02}",
                node,
                {name: asks[name][each] for name in RESOURCES},
                {name: uses[name][each] for name in RESOURCES},
                draw.choice((0, 0, 0, 1)),
                draw.choice((*["ReplicaSet/web"] * 9, "DaemonSet/agent")),
                draw.choice((*["default"] * 9, "spared")),
            )
            world.pods.append(pod)
        if not is_hot and draw.random() < 0.1:
            world.no_targets.add(node)
        if not is_hot and draw.random() < 0.1:
            world.cordoned.add(node)
    return world


class Ours:
    """The strategy in the same world, judged as the caller says."""

    def __init__(self, world: World) -> None:
        nodes = [
            a_node(
                name,
                cpu=f"{ROOM['cpu']}m",
                memory=f"{ROOM['memory']}Mi",
                taints=[f"{UNHEALTHY}:NoSchedule"] if name in world.no_targets else [],
                unschedulable=name in world.cordoned,
            )
            for name in world.nodes
        ]
        pods = [
            a_pod(
                each.name,
                namespace=each.namespace,
                node=each.node,
                owner=each.owner,
                cpu=f"{each.asks['cpu']}m",
                memory=f"{each.asks['memory']}Mi",
                priority=each.priority,
            )
            for each in world.pods
        ]
        self.context = a_context(nodes, pods, exact=False)
        self.strategy = a_strategy(
            LowNodeUtilization,
            thresholds=world.low,
            targetThresholds=world.high,
            metricsUtilization={"source": "KubernetesMetrics"},
            evictableNamespaces={"exclude": ["spared"]},
        )
        keeper = LoadKeeper(self.context.cluster)
        for now in (1_000.0, 1_150.0, 1_300.0):
            read = [(f"{each.namespace}/{each.name}", each.uses) for each in world.pods]
            by_node = [(name, world.used(name)) for name in world.nodes]
            keeper.observe(now, nodes=_readings(by_node, now), pods=_readings(read, now))


def _readings(found: list[tuple[str, Any]], now: float) -> LoadReadings:
    return LoadReadings.of(
        LoadReading(name, used["cpu"] * MILLI, used["memory"] * MIB, now) for name, used in found
    )


def plainly_sorted(world: World) -> tuple[list[str], list[Source]]:
    """The under-used nodes, and the over-used ones, the hottest first; none if no move helps."""
    used = {name: world.used(name) for name in world.nodes}
    total = {
        each: sum(much[each] for much in used.values()) / len(world.nodes) / ROOM[each] for each in RESOURCES
    }
    under = [
        name
        for name in world.nodes
        if name not in world.cordoned
        and all(used[name][each] <= line / 100 * ROOM[each] for each, line in world.low.items())
    ]
    over = [name for name in world.nodes if name not in under and world.is_over(used[name])]
    over.sort(
        key=lambda name: -max(used[name][each] / ROOM[each] - line / 100 for each, line in world.high.items())
    )
    is_saturated = any(total[each] > (line - BAND) / 100 for each, line in world.high.items())
    return under, [] if is_saturated or not under else [Source(name, used[name]) for name in over]


def compared(draw: random.Random) -> None:
    """Each exchange of the strategy is what the plain search proposes next."""
    world = a_world(draw)
    ours = Ours(world)
    cluster, named = ours.context.cluster, {each.name: each for each in world.pods}
    infos = {each.name: each for each in cluster.pods.values()}
    under, hottest = plainly_sorted(world)
    sources = {each.name: each for each in hottest}
    search, yes = exchanges(world, under, hottest), {True: draw.random(), False: draw.choice((0.0, 0.0, 0.3))}

    def goes(pod: Plain, node: str = "") -> None:
        if pod.node in sources:
            source = sources[pod.node]
            source.used = {name: much - pod.uses[name] for name, much in source.used.items()}
        cluster.displace(infos[pod.name].uid)
        if node:
            cluster.place(infos[pod.name], node)
        pod.node = node

    def judge(proposal: Any) -> Verdict:
        is_exchange = isinstance(proposal, Bundle)
        verdict = Verdict.ACCEPTED if draw.random() < yes[is_exchange] else Verdict.REFUSED
        if is_exchange:
            *small, large = proposal.candidates
            expected = next(search, None)
            assert expected is not None
            assert ([each.pod.name for each in small], large.pod.name, large.target) == expected.said
            assert {each.target for each in small} == {""}
            assert [each.node for each in small] == [large.target] * len(small)
            for each in [*expected.small, expected.large] if verdict is Verdict.ACCEPTED else []:
                goes(each, expected.target if each is expected.large else "")
        elif draw.random() < 0.05:
            sources[proposal.node].is_closed = True
            return Verdict.NODE_CLOSED
        elif verdict is Verdict.ACCEPTED:
            goes(named[proposal.pod.name])
        return verdict

    run_strategy(ours.strategy, ours.context, judge)
    assert next(search, None) is None


@given(seed=st.integers(0, 2**32))
def test_what_is_exchanged_is_what_a_plain_search_exchanges(seed: int) -> None:
    for number in range(EACH):
        compared(random.Random(f"{seed} {number}"))
