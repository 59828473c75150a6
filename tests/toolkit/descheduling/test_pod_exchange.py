"""Exchanges against all sets of small pods on all cool nodes, tried one by one, with round amounts."""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.framework.descheduling.proposals import Bundle, Destinations, Verdict
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.descheduling import pod_exchange
from plimsoll.toolkit.descheduling.eviction_order import cheapest_first, eviction_cost
from plimsoll.toolkit.descheduling.fewest_moves import BAND, FewestMoves
from plimsoll.toolkit.descheduling.node_usage import NodeUsage, UsageError
from plimsoll.toolkit.descheduling.node_utilization import NodeEviction
from plimsoll.toolkit.descheduling.pod_exchange import MOST, PROPOSED, PodExchange
from strategies.builders import a_context, an_evictor

if TYPE_CHECKING:
    from plimsoll.framework import PodInfo
    from plimsoll.framework.descheduling.context import StrategyContext

#: Half of a core, or of a gigabyte; each node has twenty, twelve are its target, and one is the band.
HALF = 10**9 // 2
ALL, CAP, BELOW = 20, 12, int(20 * BAND / 100)
MEASURED = ("cpu", "memory")


class Known:
    """Usage of named pods, in halves of both resources; those that are missing are not measured."""

    resources = MEASURED

    def __init__(self, use: dict[str, tuple[int, int]], nodes: dict[str, NodeUsage]) -> None:
        self.use, self.known_nodes = use, nodes

    def nodes(self, context: StrategyContext) -> list[NodeUsage]:
        return [*self.known_nodes.values()]

    def some(self, names: Any, context: StrategyContext) -> list[NodeUsage]:
        return [self.known_nodes[name] for name in names]

    def pod(self, pod: PodInfo, context: StrategyContext) -> dict[str, int]:
        if pod.name not in self.use:
            raise UsageError("it is not measured")
        return {name: amount * HALF for name, amount in zip(MEASURED, self.use[pod.name], strict=True)}


class World:
    """A hot node or two, and cool ones that are full by requests of memory."""

    def __init__(self, seed: int, looked_at: int) -> None:
        random = Random(seed)
        self.looked_at = looked_at
        self.hot, self.cool = ["h1", "h2"][: random.randint(1, 2)], ["c1", "c2", "c3"]
        pods: list[Any] = []
        self.use: dict[str, tuple[int, int]] = {}
        for node in (*self.hot, *self.cool):
            is_hot = node in self.hot
            for number in range(random.randint(1, 6)):
                name = f"{node}-{number}"
                pods.append(
                    a_pod(
                        name,
                        node=node,
                        namespace=random.choice(["x", "x", "x", "kept"]),
                        memory=f"{random.choice([3, 4] if is_hot else [1, 1, 1, 2])}Gi",
                        priority=random.choice([1, 1, 2]),
                        owner=f"ReplicaSet/{name}",
                    )
                )
                if random.random() < 0.9:
                    amounts = (1, 2, 3, 4, 5) if is_hot else (0, 0, 0, 1, 2, 3)
                    self.use[name] = random.choice(amounts), random.choice(amounts)
        sizes = {name: random.choice([5, 6, 7, 8]) for name in self.cool}
        nodes = [a_node(name, memory=f"{sizes.get(name, 16)}Gi") for name in (*self.hot, *self.cool)]
        self.context = a_context(nodes, pods, evictor=an_evictor(minReplicas=0), exact=False)
        self.usages = {}
        for made in nodes:
            is_hot = made.name in self.hot
            used = [random.randint(14, 19) if is_hot else random.randint(2, 10) for _ in MEASURED]
            used[random.randrange(2)] -= 4 * is_hot
            amounts_used = {name: amount * HALF for name, amount in zip(MEASURED, used, strict=True)}
            self.usages[made.name] = NodeUsage(made, amounts_used, dict.fromkeys(MEASURED, ALL * HALF))
        self.closed = {self.hot[-1]} if random.random() < 0.15 else set()
        usage: Any = Known(self.use, self.usages)
        fewest = FewestMoves(
            usage, lambda each: {name: each.used[name] - CAP * HALF for name in MEASURED}, []
        )
        eviction = NodeEviction(
            usage=usage,
            sources=[self.usages[each] for each in self.hot],
            destinations=[self.usages[each] for each in self.cool],
            room={"cpu": HALF},
            may_go_on=lambda each: max(each.used.values()) > CAP * HALF,
            removable=lambda _: True,
            reason=lambda each: f"{each.name} is hot",
            targets=Destinations.among(frozenset(self.cool)),
            excluded=("kept",),
            fewest=fewest,
            closed=self.closed,
        )
        self.exchange = PodExchange(eviction, fewest)

    def pods_on(self, node: str) -> list[PodInfo]:
        return [
            each
            for each in self.context.pods(node)
            if each.namespace != "kept" and each.name in self.use and self.context.may_go(each)
        ]

    def memory(self, pod: PodInfo) -> int:
        return pod.requests["memory"]

    def lack(self, large: PodInfo, node: str) -> int:
        row = self.context.cluster.rows[node]
        free = self.context.snapshot.allocatable[row] - self.context.snapshot.requested[row]
        return max(self.memory(large) - int(free[self.context.cluster.axis_of("memory") or 1]), 0)

    def leaving(self, large: PodInfo, node: str) -> list[PodInfo] | None:
        """The small pods that the rule names: each covers the most of what is lacking, and uses least."""
        lack = self.lack(large, node)
        small = [
            each
            for each in self.pods_on(node)
            if each.priority <= large.priority and max(self.use[each.name]) < max(self.use[large.name])
        ]
        for row in permutations(small, min(MOST, len(small))):
            missing, chosen, left = lack, [], [*small]
            for each in row:
                if missing <= 0:
                    break
                first = min(
                    left,
                    key=lambda pod: (
                        -min(self.memory(pod), missing),
                        max(self.use[pod.name]),
                        eviction_cost(pod),
                    ),
                )
                if first is not each:
                    break
                chosen.append(each)
                left.remove(each)
                missing -= self.memory(each)
            if missing <= 0:
                return chosen
        return None

    def expected(self, large: PodInfo) -> tuple[str, list[str]] | None:
        """The best cool node and who leaves it."""
        found = []
        heat = {node: max(self.usages[node].percent.values()) for node in self.cool}
        for node in sorted(self.cool, key=lambda each: (heat[each], each))[: self.looked_at]:
            if not self.lack(large, node):
                continue
            pods = self.leaving(large, node)
            if pods is None:
                continue
            gains = [
                self.use[large.name][axis] - sum(self.use[each.name][axis] for each in pods)
                for axis in (0, 1)
            ]
            after = [self.halves(node)[axis] + gains[axis] for axis in (0, 1)]
            if max(gains) > 0 and max(after) <= CAP - BELOW:
                found.append((len(pods), -max(gains), node, [each.name for each in pods]))
        return (min(found)[2], min(found)[3]) if found else None

    def order(self, node: str) -> list[PodInfo]:
        """Important pods last; those that bring the node below its target first, the smallest of them."""
        excess = [amount - CAP for amount in self.halves(node)]

        def covered(pod: PodInfo) -> float:
            uses = zip(self.use[pod.name], excess, strict=True)
            return min((used / above for used, above in uses if above > 0), default=0.0)

        return sorted(
            self.pods_on(node),
            key=lambda pod: (
                cheapest_first(pod)[0],
                covered(pod) < 1,
                covered(pod) if covered(pod) >= 1 else -covered(pod),
                cheapest_first(pod),
            ),
        )

    def halves(self, node: str) -> list[int]:
        return [self.usages[node].used[name] // HALF for name in MEASURED]


@pytest.mark.parametrize("looked_at", [2, 16])
def test_exchanges_are_those_that_trying_all_nodes_and_pods_finds(
    looked_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused, accepted, several in a row: until the node is below its target, and three at most."""
    monkeypatch.setattr(pod_exchange, "COOLEST", looked_at)
    proposed, sizes = 0, set()
    for seed in range(90):
        world, random = World(seed, looked_at), Random(f"verdicts {seed}")
        stream = world.exchange.candidates(world.context)
        bundle: Any = next(stream, None)
        for node in world.hot:
            pods = world.order(node) if node not in world.closed else []
            used, count = world.halves(node), 0
            for large in pods:
                if max(world.halves(node)) <= CAP or count == PROPOSED:
                    break
                wanted = world.expected(large)
                if wanted is None:
                    continue
                count += 1
                target, leaving = wanted
                assert isinstance(bundle, Bundle)
                *small, last = bundle.candidates
                assert [each.pod.name for each in small] == leaving
                assert {each.node for each in small} == {target}
                assert {each.target for each in small} == {""}
                assert (last.pod.name, last.node, last.target) == (large.name, node, target)
                assert last.reason == f"{node} is hot"
                assert {each.reason for each in small} == {
                    f"makes room on node {target} for pod {large.key}, because {node} is hot"
                }
                proposed += 1
                sizes.add(len(small))
                verdict = random.choice([Verdict.ACCEPTED, Verdict.REFUSED, Verdict.REFUSED])
                if verdict is Verdict.ACCEPTED:
                    used = [before - its for before, its in zip(used, world.use[large.name], strict=True)]
                try:
                    bundle = stream.send(verdict)
                except StopIteration:
                    bundle = None
                assert world.halves(node) == used
        assert bundle is None
    assert proposed > 40
    assert sizes >= {1, 2, 3}
