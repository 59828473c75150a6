"""Collects and smooths actual usage for strategies that need it, and drops stale readings.

Readings of the metrics API are smoothed over time as in descheduler: a reading loses half of its weight
within 33 seconds (0.9 every 5 s). A node whose latest reading is older than five minutes counts as not
measured, which affects decisions about that node only. Results of a policy's queries are shared with the load
book; queries of its strategies run once in each run.

A reading that no machine could produce, or from the future, is dropped on arrival.

A node that a pod has been moved off or to also counts as not measured until a reading is newer than the move,
so that no move is repeated for a load that is gone; smoothing then starts from that reading. The averaging
window of a Prometheus query is not known: its values of such a node are ignored for five minutes.

Source: descheduler v0.36, ``pkg/descheduler/metricscollector``. Differs: it keeps stale readings forever.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from plimsoll.api.v1alpha1.metrics_providers import KUBERNETES_METRICS, PROMETHEUS, source_of
from plimsoll.api.v1alpha1.prometheus import PrometheusProviderSpec
from plimsoll.api.v1alpha1.rebalancing import RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework.descheduling.measurements import Measurements, Sample
from plimsoll.model.kinds.node import Node
from plimsoll.ports.clock import Clock
from plimsoll.ports.usage import UsageReading
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.usage.load_feed import LoadFeed
from plimsoll.usage.queried_sources import QueriedSources, vectors_of
from plimsoll.usage.queried_usage import STALE_S, Usage, node_usage, pod_usage, sound

#: Seconds between two readings, and within which a reading loses half of its weight.
PERIOD_S, HALF_LIFE_S = 15.0, 33.0


@dataclass(eq=False)
class UsageCollector:
    """Keeps the usage of nodes and pods while one of ``policies`` reads the metrics API."""

    feed: LoadFeed
    sources: QueriedSources
    clock: Clock
    policies: Mapping[str, SchedulingPolicy]
    _nodes: dict[str, UsageReading] = field(default_factory=dict, init=False)
    _latest: dict[str, UsageReading] = field(default_factory=dict, init=False)
    #: the latest move that restarted a node's smoothing, by node
    _renewed: dict[str, float] = field(default_factory=dict, init=False)
    _read_at: float | None = field(default=None, init=False)

    async def run(self) -> None:
        """Smooth the feed's readings, until cancelled."""
        seen = self.feed.refreshed.count
        with self.feed.needed(self._is_needed):
            while True:
                if self._is_needed():
                    self._smooth()
                seen = await self.feed.refreshed.wait(seen)

    def _is_needed(self) -> bool:
        specs = (policy.spec.rebalancing for policy in self.policies.values())
        return any(KUBERNETES_METRICS in spec.usage_sources for spec in specs if spec is not None)

    async def measure(
        self, spec: RebalancingSpec, cluster: Mapping[str, Node], touched: Mapping[str, float] | None = None
    ) -> Measurements:
        """The measurements that strategies need.

        Args:
            spec: The spec of the policy.
            cluster: The nodes, keyed by name.
            touched: By node, when a pod was last moved off or to it (epoch).
        """
        touched = touched or {}
        nodes = pods = None
        problem = ""
        if KUBERNETES_METRICS in spec.usage_sources:
            (told, _), (answer, readings) = await self.feed.nodes(), await self.feed.pods()
            self._smooth()
            now = self.clock.now()
            problem = usage_problem(told) or usage_problem(answer)
            if told.is_done:
                self._renew(readings_after=touched)
                nodes = {
                    name: dict(each.usage)
                    for name, each in self._nodes.items()
                    if _is_fresh(each, now) and each.taken > touched.get(name, 0.0)
                }
            if answer.is_done:
                pods = {each.name: dict(each.usage) for each in sound(readings, now) if _is_fresh(each, now)}
        found = Measurements(nodes=nodes, pods=pods, problem=problem)
        server = spec.prometheus
        if server is not None and PROMETHEUS in spec.usage_sources:
            found = await self._queried(found, spec, server, cluster, touched)
        return found

    async def _queried(
        self,
        found: Measurements,
        spec: RebalancingSpec,
        server: PrometheusProviderSpec,
        cluster: Mapping[str, Node],
        touched: Mapping[str, float],
    ) -> Measurements:
        """The same with the results of the policy's queries, and of its strategy's query."""
        asked = (source_of(each.args) for each in spec.strategies)
        texts = list(dict.fromkeys(query for source, query in asked if source == PROMETHEUS and query))
        answers = await self.sources.answers(server)
        own = await self.sources.prometheus.query(server, texts) if texts else ()
        now = self.clock.now()
        problem = found.problem or next(
            (text for answer, _ in (*answers, *own) if (text := usage_problem(answer))), ""
        )
        vectors = vectors_of(server, answers)
        samples = {
            query: _settled(vector, touched, now)
            for query, (answer, vector) in zip(texts, own, strict=True)
            if answer.is_done
        }
        usage: Usage | None = None
        if vectors["node"]:
            usage = {
                name: amounts
                for name, amounts in node_usage(vectors["node"], server.queries.node, cluster, now).items()
                if now - touched.get(name, float("-inf")) >= STALE_S
            }
        pods = pod_usage(vectors["pod"], now) if vectors["pod"] else None
        return replace(found, samples=samples, queried=usage, queried_pods=pods, problem=problem)

    def _smooth(self) -> None:
        """Smooth the latest reading of nodes, unless it is too soon after the one before."""
        if self.feed.latest is None:
            return
        now, readings = self.feed.latest
        elapsed = math.inf if self._read_at is None else now - self._read_at
        if elapsed < PERIOD_S / 2:
            return
        readings = sound(readings, now)
        self._nodes = {each.name: self._smoothed(each, elapsed) for each in readings}
        self._latest = {each.name: each for each in readings}
        self._read_at = now

    def _renew(self, readings_after: Mapping[str, float]) -> None:
        """Restart smoothing for nodes whose first reading since a move has arrived."""
        for name, moment in readings_after.items():
            latest = self._latest.get(name)
            if latest is not None and latest.taken > moment > self._renewed.get(name, 0.0):
                self._nodes[name] = latest
                self._renewed[name] = moment
        self._renewed = {name: at for name, at in self._renewed.items() if name in readings_after}

    def _smoothed(self, reading: UsageReading, elapsed: float) -> UsageReading:
        before = self._nodes.get(reading.name)
        if before is None or before.taken >= reading.taken:
            return before or reading  # the first one, or one that was read already
        weight = 0.5 ** (elapsed / HALF_LIFE_S)
        usage = {
            name: round(weight * before.usage.get(name, amount) + (1 - weight) * amount)
            for name, amount in reading.usage.items()
        }
        return UsageReading(reading.name, usage, reading.taken)


def usage_problem(answer: WriteResult) -> str:
    """Why the metrics API or Prometheus gave no result, "" if it did."""
    if answer.is_done:
        return ""
    if answer.verdict is WriteOutcome.GONE:
        return "the cluster does not serve metrics.k8s.io; is there a metrics-server?"
    return answer.message or f"the answer was {answer.verdict}"


def _settled(samples: Sequence[Sample], touched: Mapping[str, float], now: float) -> list[Sample]:
    """The samples of nodes that no pod was recently moved off or to."""
    return [
        sample
        for sample in samples
        if now - touched.get(sample.labels.get("instance", ""), float("-inf")) >= STALE_S
    ]


def _is_fresh(reading: UsageReading, now: float) -> bool:
    return now - reading.taken < STALE_S
