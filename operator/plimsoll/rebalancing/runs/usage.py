"""Actual usage for strategies that ask for it: collected, smoothed, and forgotten when it grows old.

The metrics API is read every fifteen seconds while some policy wants it, and smoothed over time as
descheduler does: half of a reading's weight is gone after 33 seconds (0.9 every 5 s). A node whose latest
reading is older than five minutes counts as not measured, which harms decisions about that node only.
Prometheus is asked once in each run: the queries of the policy, and those of its strategies.

A reading that no machine could produce, or of a time that has not come, is left out on arrival.

A node that a pod has been moved off or to is not measured either until a reading is newer than the move, so
that no move is repeated for a load that is gone; smoothing then starts from that reading. Over what time a
Prometheus query averages is not known: its values of such a node are not used for five minutes.

Source: descheduler v0.36, ``pkg/descheduler/metricscollector``. Differs: it keeps stale readings for ever.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from plimsoll.api.v1alpha1.metrics_providers import KUBERNETES_METRICS, PROMETHEUS
from plimsoll.api.v1alpha1.prometheus import PrometheusProviderSpec
from plimsoll.api.v1alpha1.rebalancing import RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.load_feed import LoadFeed
from plimsoll.framework.descheduling.measurements import Measurements, Sample
from plimsoll.model.kinds.node import Node
from plimsoll.ports.clock import Clock
from plimsoll.ports.usage import PrometheusReader, UsageReader, UsageReading
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.queried_usage import STALE_S, Usage, all_queries, node_usage, pod_usage, sound

#: Seconds between two readings, and in which half of a reading's weight is gone.
PERIOD_S, HALF_LIFE_S = 15.0, 33.0


@dataclass(eq=False)
class UsageCollector:
    """Keeps what nodes and pods use, while one of ``policies`` reads the metrics API."""

    meter: UsageReader
    prometheus: PrometheusReader
    clock: Clock
    policies: Mapping[str, SchedulingPolicy]
    feed: LoadFeed | None = None  #: keeps the load book, too
    _nodes: dict[str, UsageReading] = field(default_factory=dict, init=False)
    _latest: dict[str, UsageReading] = field(default_factory=dict, init=False)
    #: the move since which a node is smoothed, by node
    _renewed: dict[str, float] = field(default_factory=dict, init=False)
    _read_at: float | None = field(default=None, init=False)
    _problem: str = field(default="", init=False)

    async def run(self) -> None:
        """Read again and again, until cancelled."""
        while True:
            specs = (policy.spec.rebalancing for policy in self.policies.values())
            strategies = [strategy for spec in specs if spec is not None for strategy in spec.strategies]
            is_needed = any(source_of(each.args)[0] == KUBERNETES_METRICS for each in strategies)
            if is_needed:
                await self._collect()
            if self.feed is not None:
                await self.feed.turn(is_needed=is_needed)
            await self.clock.sleep(PERIOD_S)

    async def measure(
        self, spec: RebalancingSpec, cluster: Mapping[str, Node], touched: Mapping[str, float] | None = None
    ) -> Measurements:
        """What strategies need to know.

        Args:
            spec: Whose strategies ask.
            cluster: The nodes, keyed by name.
            touched: When a pod was last moved off or to a node, by node (epoch).
        """
        touched = touched or {}
        sources = {source_of(each.args)[0] for each in spec.strategies}
        nodes = pods = None
        problem = ""
        if KUBERNETES_METRICS in sources:
            await self._collect()
            answer, readings = await self.meter.pods()
            now = self.clock.now()
            problem = self._problem or usage_problem(answer)
            if not self._problem:
                self._renew(readings_after=touched)
                nodes = {
                    name: dict(each.usage)
                    for name, each in self._nodes.items()
                    if _is_fresh(each, now) and each.taken > touched.get(name, 0.0)
                }
            if answer.is_done:
                pods = {each.name: dict(each.usage) for each in sound(readings, now) if _is_fresh(each, now)}
        found = Measurements(nodes=nodes, pods=pods, problem=problem)
        server = next(
            (each.prometheus for each in spec.metrics_providers if each.prometheus is not None), None
        )
        if PROMETHEUS in sources and server is not None:
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
        """With what the queries of the policy, and the one of its strategies, return."""
        asked = (source_of(each.args) for each in spec.strategies)
        own = list(dict.fromkeys(query for source, query in asked if source == PROMETHEUS and query))
        queries = list(all_queries(server.queries.node, server.queries.pod))
        texts = [*(query for *_, query in queries), *own]
        answers = await self.prometheus.query(server, texts) if texts else ()
        now = self.clock.now()
        problem = found.problem or next(
            (text for answer, _ in answers if (text := usage_problem(answer))), ""
        )
        vectors: dict[str, dict[str, Sequence[Sample]]] = {"node": {}, "pod": {}}
        for (kind, resource, _), (answer, vector) in zip(queries, answers, strict=False):
            if answer.is_done:
                vectors[kind][resource] = vector
        samples = {
            query: _settled(vector, touched, now)
            for query, (answer, vector) in zip(own, answers[len(queries) :], strict=True)
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

    async def _collect(self) -> None:
        now = self.clock.now()
        if self._read_at is not None and now - self._read_at < PERIOD_S / 2:
            return
        answer, readings = await self.meter.nodes()
        self._problem = usage_problem(answer)
        if answer.is_done:
            readings = sound(readings, now)
            elapsed = 0.0 if self._read_at is None else now - self._read_at
            self._nodes = {each.name: self._smoothed(each, elapsed) for each in readings}
            self._latest = {each.name: each for each in readings}
            self._read_at = now

    def _renew(self, readings_after: Mapping[str, float]) -> None:
        """Start smoothing afresh where the first reading since a move has come."""
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


def source_of(args: Mapping[str, object]) -> tuple[str, str]:
    """Where a strategy's arguments say that usage comes from, and the query; "" for requests."""
    metrics = args.get("metricsUtilization")
    if not isinstance(metrics, Mapping):
        return "", ""
    if metrics.get("metricsServer") is True:
        return KUBERNETES_METRICS, ""
    prometheus = metrics.get("prometheus")
    query = prometheus.get("query") if isinstance(prometheus, Mapping) else ""
    return str(metrics.get("source") or ""), str(query or "")


def usage_problem(answer: WriteResult) -> str:
    """Why the metrics API or Prometheus gave no answer, "" when it did."""
    if answer.is_done:
        return ""
    if answer.verdict is WriteOutcome.GONE:
        return "the cluster does not serve metrics.k8s.io; is there a metrics-server?"
    return answer.message or f"the answer was {answer.verdict}"


def _settled(samples: Sequence[Sample], touched: Mapping[str, float], now: float) -> list[Sample]:
    """The samples of nodes that no pod was moved off or to a short while ago."""
    return [
        sample
        for sample in samples
        if now - touched.get(sample.labels.get("instance", ""), float("-inf")) >= STALE_S
    ]


def _is_fresh(reading: UsageReading, now: float) -> bool:
    return now - reading.taken < STALE_S
