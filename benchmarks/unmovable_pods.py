"""Replays arrivals with and without PackUnmovable, under consolidation and an autoscaler: cost and restarts.

    python benchmarks/unmovable_pods.py --trace FOLDER [--unmovable 5,10,20] [--seeds 3]

FOLDER has the Azure arrivals (``v1.dev.txt.gz`` with durations), of which ``--part`` percent of the batches
are taken. A batch is a ReplicaSet, a VM a pod; ``--unmovable`` percent of the batches bear the annotation
``plimsoll.dev/evict: "false"``. The autoscaler is played: a pod that fits nowhere gets a node of one type
immediately, and a node without pods is removed immediately. ConsolidateNodes runs once an hour, and each of
its moves is a restart. Without a folder the arrivals are made up, so that the code runs anywhere.

Cost and restarts are counted after the warm-up. All variants meet the same pods.
"""

import argparse
import gzip
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo, Registry
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import PodStatus
from plimsoll.planning.limits import NO_CEILING, Limits
from plimsoll.planning.moves import PlanningContext, RebalancingConfig, replacement_of
from plimsoll.planning.planners import make_plan
from plimsoll.planning.scope import PolicyScope
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.plugins.pack_unmovable import PackUnmovable
from plimsoll.strategies import EVICTORS, IN_TREE
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.toolkit.descheduling.unmovable_pods import StayRule

SCHEDULER = "default-scheduler"
START = datetime(2026, 1, 1, tzinfo=UTC)

#: Seconds of a bin of the trace, and bins between two runs.
BIN_S, BINS_PER_RUN = 300, 12

#: Nodes: m7i.8xlarge, what a kubelet leaves of it, and its price on demand in us-east-1 (July 2026).
CPU_MILLI, MEMORY_MIB, MOST_PODS, USD_PER_HOUR = 31_850, 118_312, 234, 1.6128

#: Cores and GiB by letter, as ``flav_map.txt`` has them.
FLAVOURS = {
    "a": (1, 0.75), "b": (1, 1.75), "c": (1, 2), "d": (16, 112), "e": (2, 14), "f": (2, 16), "g": (2, 3.5),
    "h": (2, 4), "i": (4, 28), "j": (4, 32), "k": (4, 7), "l": (4, 8), "m": (8, 14), "n": (8, 16),
    "o": (8, 56), "p": (8, 64),
}  # fmt: skip


class Arrival(NamedTuple):
    """A pod: its owner, its flavour, when it comes and how long it runs, in bins."""

    owner: str
    flavour: str
    comes: int
    bins: int
    stays: bool


def read_arrivals(folder: Path, bins: int, part: float, unmovable: float, seed: int) -> list[Arrival]:
    """The first ``bins`` bins of the trace."""
    rng = random.Random(seed)
    lifetimes = _lifetimes(folder / "v1.interval_map.txt.gz")
    found = []
    lines = zip(_lines(folder / "v1.dev.txt.gz"), _lines(folder / "v1.dev.c2100000.txt.gz"), strict=True)
    for number, (come, last) in enumerate(lines):
        if number == bins:
            break
        flavours, durations = come.split(" ")[1].split(","), last.split(" ")[1].split(",")
        batch, taken, stays = 0, False, False
        begins = True
        for flavour, duration in zip(flavours, durations, strict=True):
            if begins:
                batch, begins = batch + 1, False
                taken, stays = rng.random() * 100 < part, rng.random() * 100 < unmovable
            if flavour == "|":
                begins = True
            elif taken and flavour in FLAVOURS:
                seconds = rng.choice(lifetimes[int(duration[1:])]) if duration[0] == "U" else 10**9
                owner = f"w{number}-{batch}-{flavour}"
                found.append(Arrival(owner, flavour, number, max(1, seconds // BIN_S), stays))
    return found


def drawn_arrivals(bins: int, unmovable: float, seed: int) -> list[Arrival]:
    """Arrivals of the same kind: small batches of small pods, most of them short, some that last."""
    rng, found = random.Random(seed), []
    for number in range(bins):
        for batch in range(rng.randrange(4)):
            flavour, stays = rng.choice("bbbbgggkkm"), rng.random() * 100 < unmovable
            lasts = rng.choice((1, 2, 3, 12, 48, 300))
            found += [
                Arrival(f"w{number}-{batch}", flavour, number, lasts, stays)
                for _ in range(rng.choice((1, 1, 2, 5)))
            ]
    return found


def _lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from (line.strip() for line in lines)


def _lifetimes(path: Path) -> dict[int, list[int]]:
    """The seconds that each bin of durations means."""
    found = defaultdict(list)
    for line in _lines(path):
        seconds, number = map(int, line.split())
        found[number].append(max(seconds, BIN_S))
    return found


@dataclass
class Variant:
    """How pods are placed."""

    name: str
    packs: bool  #: whether NodeResourcesFit prefers full nodes
    weight: int  #: of PackUnmovable; 0: without it
    consolidates: bool = True


@dataclass
class Result:
    """Sums over the counted bins."""

    node_hours: float = 0.0
    held_hours: float = 0.0  #: of nodes with a pod that stays
    restarts: int = 0
    pods: int = 0
    bound_hours: float = 0.0  #: of as few nodes as the requests would fill


@dataclass
class Day:
    """The cluster of one variant."""

    variant: Variant
    seed: int
    cluster: Cluster = field(default_factory=Cluster)
    made: int = 0
    result: Result = field(default_factory=Result)

    def __post_init__(self) -> None:
        enabled = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
        if self.variant.weight:
            enabled.append(Enabled("PackUnmovable", self.variant.weight))
        strategy = {"scoringStrategy": {"type": "MostAllocated"}} if self.variant.packs else {}
        profile = build_profile(
            ProfileConfig(SCHEDULER, args={"NodeResourcesFit": strategy}), Registry(PLUGINS), enabled
        )
        built = EvictorRegistry(EVICTORS).build("DefaultEvictor", {"minReplicas": 0}, "evictor")
        evictors = (PolicyScope(), built)
        self.rule = StayRule(lambda _: evictors)
        for plugin in profile.plugins:
            if isinstance(plugin, PackUnmovable):
                plugin.rule = self.rule
        self.scheduler = ProfileScheduler(profile, self.cluster, choose=random.Random(self.seed).randrange)
        strategies = StrategyRegistry(IN_TREE)
        self.policy = RebalancingConfig(
            strategies=[strategies.build("ConsolidateNodes", {"nodes": 1_000}, "args")],
            evictors=evictors,
            profiles={SCHEDULER: profile},
            limits=Limits(per_workload=NO_CEILING),
        )

    def play(self, arrivals: list[Arrival], bins: int, warm: int) -> Result:
        """All bins, of which the first ``warm`` are not counted."""
        by_bin, ends = defaultdict(list), defaultdict[int, list[str]](list)
        for each in arrivals:
            by_bin[each.comes].append(each)
        for now in range(bins):
            for uid in ends.pop(now, ()):
                self._end(uid)
            for number, each in enumerate(by_bin[now]):
                uid = f"{each.owner}-{number}"
                self._come(each, uid)
                ends[now + each.bins].append(uid)
            self._remove_empty()
            if self.variant.consolidates and now % BINS_PER_RUN == BINS_PER_RUN - 1:
                self._consolidate(now, is_counted=now >= warm)
                self._remove_empty()
            if now >= warm:
                self._count()
        return self.result

    def _come(self, each: Arrival, uid: str) -> None:
        cores, gib = FLAVOURS[each.flavour]
        annotations = {"plimsoll.dev/evict": "false"} if each.stays else {}
        pod = a_pod(
            uid,
            owner=f"ReplicaSet/{each.owner}",
            cpu=str(cores),
            memory=f"{int(gib * 1024)}Mi",
            metadata={"uid": uid, "annotations": annotations, "creationTimestamp": START.isoformat()},
        )
        info = self.cluster.templates.info(pod)
        decision = schedule(self.scheduler, info)
        if decision.outcome is not AttemptOutcome.SCHEDULED:
            self.made += 1
            self.cluster.set_node(
                a_node(f"node-{self.made:05}", cpu=f"{CPU_MILLI}m", memory=f"{MEMORY_MIB}Mi", pods=MOST_PODS)
            )
            decision = schedule(self.scheduler, info)
        if decision.outcome is not AttemptOutcome.SCHEDULED:
            raise RuntimeError(f"no node takes {uid}: {decision.outcome}")
        spec = msgspec.structs.replace(pod.spec, node_name=decision.node)
        running = msgspec.structs.replace(pod, spec=spec, status=PodStatus(phase="Running"))
        self.cluster.place(self.cluster.templates.info(running), decision.node)

    def _end(self, uid: str) -> None:
        self.cluster.displace(self.moved.pop(uid, uid))

    moved: dict[str, str] = field(default_factory=dict)  #: the present uid of a pod that was moved

    def _consolidate(self, now: int, *, is_counted: bool) -> None:
        moment = START + timedelta(seconds=now * BIN_S)
        plan = make_plan(self.policy, self.cluster, PlanningContext(moment))
        if plan.failures:
            raise RuntimeError(str(plan.failures[0]))
        first = {uid: name for name, uid in self.moved.items()}
        for move in plan.moves:
            self.cluster.displace(move.pod.uid)
            fresh = _arrived(move.pod, self.cluster, move.target)
            self.cluster.place(fresh, move.target)
            self.moved[first.get(move.pod.uid, move.pod.uid)] = fresh.uid
        self.result.restarts += len(plan.moves) if is_counted else 0

    def _remove_empty(self) -> None:
        for node in [each.name for row, each in enumerate(self.cluster.nodes) if not self._pods(row)]:
            self.cluster.remove_node(node)

    def _pods(self, row: int) -> list[PodInfo]:
        return list(self.cluster.pods_on(row))

    def _count(self) -> None:
        hours, rows = BIN_S / 3600, range(len(self.cluster))
        objects = self.cluster.objects
        held = sum(any(self.rule.keeps(each, objects) for each in self.cluster.pods_on(row)) for row in rows)
        requested = self.cluster.requested[: len(self.cluster)].sum(axis=0)
        least = max(requested[0] / CPU_MILLI, requested[1] / (MEMORY_MIB * 2**20))
        self.result.node_hours += len(self.cluster) * hours
        self.result.held_hours += held * hours
        self.result.bound_hours += float(least) * hours
        self.result.pods = max(self.result.pods, len(self.cluster.pods))


def _arrived(pod: PodInfo, cluster: Cluster, node: str) -> PodInfo:
    """The replacement as it runs on its node."""
    awaited = replacement_of(pod, cluster, node).pod
    return cluster.templates.info(
        msgspec.structs.replace(
            awaited,
            metadata=msgspec.structs.replace(awaited.metadata, uid=f"{pod.uid}+"),
            status=PodStatus(phase="Running"),
        )
    )


def main() -> None:
    """Play each variant for each seed and share of unmovable batches, and print the means."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trace", type=Path, help="folder of the Azure arrivals; left out, made up")
    parser.add_argument("--unmovable", default="10", help="percent of the batches: 5,10,20")
    parser.add_argument("--weights", default="1,5", help="of PackUnmovable")
    parser.add_argument("--part", type=float, default=3.0, help="percent of the batches of the trace")
    parser.add_argument("--hours", type=int, default=48)
    parser.add_argument("--warm", type=int, default=24, help="hours that are not counted")
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()

    weights = [int(each) for each in given.weights.split(",")]
    variants = [Variant("nothing consolidates", packs=False, weight=0, consolidates=False)]
    for packs, name in ((False, "spreads"), (True, "packs")):
        variants += [Variant(f"{name}, PackUnmovable {each}", packs, each) for each in (0, *weights)]
    bins, warm = given.hours * 12, given.warm * 12
    for share in map(float, given.unmovable.split(",")):
        table = Table(
            title=f"{share:g} % of the batches stay, {given.hours - given.warm} h, {given.seeds} seeds"
        )
        for column in ("profile", "node hours", "held node hours", "USD", "above the bound", "restarts"):
            table.add_column(column, justify="left" if column == "profile" else "right")
        for variant in variants:
            results = []
            for seed in range(1, given.seeds + 1):
                arrivals = (
                    read_arrivals(given.trace, bins, given.part, share, seed)
                    if given.trace
                    else drawn_arrivals(bins, share, seed)
                )
                results.append(Day(variant, seed).play(arrivals, bins, warm))
            count = len(results)
            hours = sum(each.node_hours for each in results) / count
            bound = sum(each.bound_hours for each in results) / count
            table.add_row(
                variant.name,
                f"{hours:,.0f}",
                f"{sum(each.held_hours for each in results) / count:,.0f}",
                f"{hours * USD_PER_HOUR:,.0f}",
                f"{hours / bound - 1:.1%}",
                f"{sum(each.restarts for each in results) / count:,.0f}",
            )
        Console(width=110).print(table)


if __name__ == "__main__":
    main()
