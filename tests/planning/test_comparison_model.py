"""Judges moves by complaints as a page of plain code does that looks at the whole cluster each time.

Strategies of two policies watch it: of every gravity, by counts, by rules, by measured use, by running again;
some raise, and then say nothing for the rest of the plan. Moves are asked about twice, made and forgotten.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from planning.rounds import NOW
from plimsoll.framework import NoArgs, PluginError
from plimsoll.framework.descheduling.complaints import Complaint, Gravity, nodes_near, pods_near
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.framework.descheduling.proposals import Candidate
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.planning.aftermath import settled, shifted
from plimsoll.planning.complaint_comparison import (
    MENDS_NOTHING,
    NEW_COMPLAINT,
    WOULD_MOVE_AGAIN,
    ComplaintComparison,
    ComplaintWatcher,
    ProposedMove,
)
from plimsoll.planning.scope import PolicyScope
from plimsoll.testing.builders import a_cluster, a_node, a_pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.framework.descheduling.complaints import Vicinity

NODES = ("a", "b", "c")
#: Complaints by what they are about.
Amounts = dict[Complaint, float]


class Toy:
    """A strategy that raises when it is asked about a node with more than ``breaks`` pods."""

    name: ClassVar = ""
    kind: ClassVar = StrategyKind.BALANCE
    args_model: ClassVar = NoArgs

    def __init__(self, name: str, most: int, breaks: int, gravity: Gravity = Gravity.BALANCE) -> None:
        self.name = name  # type: ignore[misc] # each has a name of its own
        self.most, self.breaks, self.gravity = most, breaks, gravity

    def candidates(self, context: StrategyContext) -> Iterator[Candidate]:
        yield from ()

    def check(self, context: StrategyContext, near: Vicinity | None) -> None:
        if any(len(context.all_pods(node)) > self.breaks for node in nodes_near(context, near)):
            raise ValueError("too many")


class Crowds(Toy):
    """Complains of nodes with more than ``most`` pods."""

    complains_of_crowding = True

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Amounts:
        self.check(context, near)
        return self.of({each: len(context.all_pods(each)) for each in nodes_near(context, near)})

    def of(self, counts: dict[str, Any]) -> Amounts:
        return {
            Complaint(f"{node} is full for {self.name}", self.gravity): count - self.most
            for node, count in counts.items()
            if count > self.most
        }


class Hot(Crowds):
    """Complains of nodes that use more than ``most`` cores."""

    complains_of_crowding = False

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Amounts:
        self.check(context, near)
        used = context.measurements.nodes or {}
        return self.of({each: used[each]["cpu"] for each in nodes_near(context, near)})


class Empties(Crowds):
    """The same as :class:`Crowds`, and empties nodes with one pod or none."""

    def to_be_emptied(self, context: StrategyContext, near: Vicinity) -> frozenset[str]:
        self.check(context, near)
        return frozenset(each for each in nodes_near(context, near) if len(context.all_pods(each)) <= 1)


class Forbids(Toy):
    """Complains of each pod on a node, as many times as ``most`` says."""

    def complaints(self, context: StrategyContext, near: Vicinity | None = None) -> Amounts:
        self.check(context, near)
        return self.of({pod.key: node for pod, node in pods_near(context, near)})

    def of(self, places: dict[str, str]) -> Amounts:
        wrong = NODES[self.most % len(NODES)]
        return {
            Complaint(f"{key} is wrong for {self.name}", self.gravity): 1.0
            for key, node in places.items()
            if node == wrong
        }


class Runs(Toy):
    """Has no complaints; proposes the first pods of nodes that have too many."""

    def candidates(self, context: StrategyContext) -> Iterator[Candidate]:
        self.check(context, None)
        for node in context.nodes:
            while len(context.all_pods(node)) > self.most:
                yield Candidate(context.all_pods(node)[0], node, "too many")


class Renews(Runs):
    """A fresh pod is what it wants: it never judges places."""

    renews: ClassVar = True


class World:
    """A cluster, what it is by plain dictionaries, and who watches it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        pods = [
            a_pod(
                f"p{n}",
                namespace=random.choice("xy"),
                node=random.choice(NODES),
                cpu=random.choice("12"),
                owner=f"ReplicaSet/r{n}",
            )
            for n in range(6)
        ]
        self.fork = a_cluster([a_node(name, cpu="20") for name in NODES], pods)
        self.places = {f"{pod.namespace}/{pod.name}": pod.node_name for pod in pods}
        self.use = {key: random.randint(0, 3) for key in self.places}
        self.node_use = {
            node: sum(self.use[key] for key, at in self.places.items() if at == node) for node in NODES
        }
        measurements = Measurements(
            nodes={node: {"cpu": cores} for node, cores in self.node_use.items()},
            pods={key: {"cpu": cores} for key, cores in self.use.items()},
        )
        self.scope = frozenset(random.sample("xy", random.randint(1, 2)))
        own = StrategyContext(self.fork, NODES, NOW, measurements=measurements)
        other = StrategyContext(
            self.fork, NODES, NOW, (PolicyScope(include=self.scope),), measurements=measurements
        )
        self.contexts = [own, other]
        self.own = [self.a_strategy(f"own{n}") for n in range(3)]
        others = [ComplaintWatcher(self.a_strategy(f"other{n}"), other, "calm") for n in range(2)]
        self.watchers = [*(ComplaintWatcher(each, own) for each in self.own), *others]
        self.judged = ComplaintComparison(self.fork, own, self.own, others)
        toys: list[Any] = [each.strategy for each in self.watchers]
        self.renewing: list[Any] = [each for each in toys if isinstance(each, Renews)]
        self.emptying: list[Any] = [each for each in toys if isinstance(each, Empties)]
        self.failed: set[str] = set()
        self.known: dict[tuple[int, str], Any] = {}

    def a_strategy(self, name: str) -> Any:
        kind = self.random.choice([Crowds, Hot, Empties, Empties, Forbids, Runs, Renews])
        breaks = self.random.choice([3, 99, 99, 99])
        return kind(name, self.random.randint(1, 8), breaks, self.random.choice([*Gravity]))

    # -- the plain way: the whole cluster, before and after ------------------------------------------

    def amounts(self, each: Any, places: dict[str, str], node_use: dict[str, int], keys: set[str]) -> Amounts:
        """All complaints of a strategy."""
        counts = Counter(places.values())
        match each:
            case Hot():
                return each.of(node_use)
            case Crowds():
                return each.of(dict(counts))
            case Forbids():
                return each.of(places)
        proposed: set[str] = set()
        for node in NODES:
            here = sorted(key for key, at in places.items() if at == node)
            proposed.update(here[: max(0, len(here) - each.most)])
        return {Complaint(f"pod {key} had better run elsewhere"): 1.0 for key in proposed & keys}

    def breaks(self, each: Any, places: dict[str, str], near: set[str]) -> bool:
        counts = Counter(places.values())
        looked_at = NODES if isinstance(each, Runs) else near
        return any(counts[node] > each.breaks for node in looked_at)

    def verdict(
        self, name: str, moves: list[ProposedMove], *, mends: bool, strict: bool
    ) -> tuple[str, set[str]]:
        """The reason of the refusal, and sentences of which its message has one; "broken" if it raises."""
        keys = {move.pod.key for move in moves}
        near = {node for move in moves for node in (move.source, move.target)}
        after = self.places | {move.pod.key: move.target for move in moves}
        use_after = dict(self.node_use)
        for move in moves:
            use_after[move.source] -= self.use[move.pod.key]
            use_after[move.target] += self.use[move.pod.key]
        about = [
            each
            for each in self.watchers
            if each.strategy not in self.renewing
            and (not each.policy or any(key[0] in self.scope for key in keys))
        ]
        seen: list[dict[str, Amounts]] = []
        for places, node_use in ((self.places, self.node_use), (after, use_after)):
            seen.append({})
            for each in about:
                toy: Any = each.strategy
                if toy.name in self.failed:
                    continue
                if self.breaks(toy, places, near):
                    if toy.name == name:
                        return "broken", set()
                    self.failed.add(toy.name)
                else:
                    seen[-1][toy.name] = self.amounts(toy, places, node_use, keys)
        old, new = seen
        mended = [
            gravity
            for gravity in Gravity
            if self.total(new.get(name, {}), gravity) < self.total(old.get(name, {}), gravity)
        ]
        proposer = next(each for each in self.own if each.name == name)
        must = mends and not isinstance(proposer, Runs)
        least = max(mended) if must and mended and not strict else Gravity.BALANCE
        worse = {
            (toy, complaint)
            for toy, found in new.items()
            for complaint, amount in found.items()
            if complaint.gravity >= least and amount > old.get(toy, {}).get(complaint, 0.0)
        }
        if worse:
            return NEW_COMPLAINT, {complaint.sentence for _, complaint in worse}
        if must and not mended:
            near_it = self.near(old.get(name, {}), near, keys)
            worst = max(near_it.values(), default=0.0)
            return MENDS_NOTHING, {each.sentence for each, amount in near_it.items() if amount == worst} or {
                "has nothing to complain of"
            }
        counts = Counter(after.values())
        sentences = {
            f"empties node {move.target} "
            for move in moves
            for each in about
            if strict and each.strategy.name not in {name, *self.failed}
            if each.strategy in self.emptying and move.source != move.target and counts[move.target] <= 1
        }
        return (WOULD_MOVE_AGAIN, sentences) if sentences else ("", set())

    @staticmethod
    def near(amounts: Amounts, nodes: set[str], keys: set[str]) -> Amounts:
        """Those about nodes and pods of a move."""
        return {
            each: amount
            for each, amount in amounts.items()
            if each.sentence.split()[0] in nodes | keys or each.sentence.startswith("pod ")
        }

    @staticmethod
    def total(amounts: Amounts, gravity: Gravity) -> float:
        return sum(amount for complaint, amount in amounts.items() if complaint.gravity is gravity)

    # -- what is asked -------------------------------------------------------------------------------

    def is_as_it_was(self) -> bool:
        places = {pod.key: self.fork.nodes[row].name for pod, row in self.fork.placed()}
        measured = [
            {node: usage["cpu"] for node, usage in (each.measurements.nodes or {}).items()}
            for each in self.contexts
        ]
        return places == self.places and measured == [self.node_use] * 2

    def some_moves(self) -> list[ProposedMove]:
        pods = self.random.sample(
            sorted(self.fork.pods.values(), key=lambda pod: pod.key), self.random.choice([1, 1, 2, 3])
        )
        return [ProposedMove(pod, self.places[pod.key], self.random.choice(NODES)) for pod in pods]

    def ask(self, moves: list[ProposedMove]) -> str:
        name = self.random.choice(self.own).name
        mends, strict = self.random.random() < 0.7, self.random.random() < 0.5
        expected, sentences = self.verdict(name, moves, mends=mends, strict=strict)
        if expected == "broken":
            with pytest.raises(PluginError, match=name):
                self.judged.refusal(name, moves, mends=mends, strict=strict)
            assert self.is_as_it_was()
            return expected
        found = self.judged.refusal(name, moves, mends=mends, strict=strict)
        assert self.is_as_it_was()
        assert (found.reason if found else "") == expected
        assert found is None or any(each in found.message for each in sentences)
        self.keep(found, moves)
        return expected

    def keep(self, found: Any, moves: list[ProposedMove]) -> None:
        """What a strategy says that judges by requests alone is known for pods with equal requests."""
        (move, *rest) = moves
        place = (move.pod.requests["cpu"], move.target)
        by_requests = [each for each in self.own if getattr(each, "complains_of_crowding", False)]
        is_new = bool(found) and found.reason == NEW_COMPLAINT and not rest
        if is_new and any(f"{each.name} would" in found.message for each in by_requests):
            self.known[place] = found
        assert self.judged.known_refusal(move.pod, move.target) == self.known.get(place)

    def make(self, moves: list[ProposedMove]) -> None:
        """Moves are made: what was known about nodes is forgotten."""
        for move in moves:
            self.fork.displace(move.pod.uid)
        for move in moves:
            self.fork.place(settled(move.pod, self.fork, move.target, NOW), move.target)
            self.places[move.pod.key] = move.target
            self.node_use[move.source] -= self.use[move.pod.key]
            self.node_use[move.target] += self.use[move.pod.key]
        for each in self.contexts:
            each.measurements = shifted(
                each.measurements, [(move.pod.key, move.source, move.target) for move in moves]
            )
        self.judged.forget()
        self.known.clear()


def test_moves_are_judged_as_the_whole_cluster_is_before_and_after() -> None:
    ends: Counter[str] = Counter()
    for seed in range(40):
        world = World(Random(seed))
        for _ in range(10):
            moves = world.some_moves()
            ends[world.ask(moves)] += 1
            if not world.ask(moves):
                world.make(moves)

    assert set(ends) == {"", "broken", NEW_COMPLAINT, MENDS_NOTHING, WOULD_MOVE_AGAIN}
    assert min(ends.values()) >= 5, ends
