"""Queries the Prometheus server of each policy repeatedly, for the load book.

A policy whose queries measure cpu and memory of nodes is a source of readings. It is queried every thirty
seconds while its strategies or some profile need them, and each response serves all requests within five
seconds. Sources are queried concurrently, so a silent one delays no other. If several of them measure a node,
the policy whose name sorts first counts; if none does, the metrics API counts.

The averaging window of a query is not known. It is taken to be five minutes, so that a pod is not judged by a
value from before it ran.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from plimsoll.api.v1alpha1.metrics_providers import PROMETHEUS
from plimsoll.api.v1alpha1.prometheus import PrometheusProviderSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.framework.descheduling.measurements import Sample
from plimsoll.model.columns.cluster import Cluster
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.ports.usage import MEASURED, PrometheusReader
from plimsoll.ports.writes import WriteResult
from plimsoll.usage.load_feed import SHARED_S, LoadFeed
from plimsoll.usage.queried_usage import all_queries, node_readings, pod_readings

#: Seconds between two readings of a source, and between two checks of what is due.
SOURCE_S, LOOK_S = 30.0, 15.0

Answers = Sequence[tuple[WriteResult, Sequence[Sample]]]


@dataclass(eq=False)
class QueriedSources:
    """Reads what policies' queries measure, and passes it to the load book.

    Attributes:
        serves_strategies: Whether this process runs policies.
    """

    prometheus: PrometheusReader
    cluster: Cluster
    policies: Mapping[str, SchedulingPolicy]
    feed: LoadFeed
    clock: Clock
    observer: Observer
    serves_strategies: bool = field(default=False, init=False)
    _sources: dict[str, "_Source"] = field(default_factory=dict, init=False)

    async def run(self) -> None:
        """Read what is needed repeatedly, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                for server in self._wanted():
                    source = self._source(server)
                    if (
                        not source.is_read
                        and self.clock.monotonic() - source.begun_at > SOURCE_S - LOOK_S / 2
                    ):
                        source.is_read, source.begun_at = True, self.clock.monotonic()
                        group.create_task(self._read(server, source))
                await self.clock.sleep(LOOK_S)

    async def answers(self, server: PrometheusProviderSpec) -> Answers:
        """The results of all queries of a server, in their order; new results reach the load book."""
        source = self._source(server)
        async with source.turn:
            if self.clock.monotonic() - source.asked_at >= SHARED_S:
                queries = [text for *_, text in all_queries(server.queries.node, server.queries.pod)]
                source.answers = await self.prometheus.query(server, queries) if queries else ()
                source.asked_at = self.clock.monotonic()
                self._hand_in(server, source.answers)
            return source.answers

    def _wanted(self) -> list[PrometheusProviderSpec]:
        """The servers to query now, in the order of their policies' names, each once."""
        found: dict[str, PrometheusProviderSpec] = {}
        for _, policy in sorted(self.policies.items()):
            spec = policy.spec.rebalancing
            server = None if spec is None else spec.prometheus
            if spec is None or server is None or not MEASURED.keys() <= server.queries.node.keys():
                continue
            if self.feed.is_scored or (self.serves_strategies and PROMETHEUS in spec.usage_sources):
                found.setdefault(server.model_dump_json(), server)
        self._sources = {
            key: each for key, each in self._sources.items() if key in found or each.turn.locked()
        }
        return list(found.values())

    def _source(self, server: PrometheusProviderSpec) -> "_Source":
        return self._sources.setdefault(server.model_dump_json(), _Source())

    async def _read(self, server: PrometheusProviderSpec, source: "_Source") -> None:
        try:
            await self.answers(server)
        except Exception as exc:  # noqa: BLE001 - whatever one source answers, the others are read
            self.observer.failed("reading usage from Prometheus", type(exc).__name__)
        finally:
            source.is_read = False

    def _hand_in(self, server: PrometheusProviderSpec, answers: Answers) -> None:
        """Pass the usable part of the results to the load book."""
        wanted = self._wanted()
        vectors = vectors_of(server, answers)
        if server not in wanted or not (vectors["node"] or vectors["pod"]):
            return
        now, nodes = self.clock.now(), {node.name: node for node in self.cluster.nodes}
        self.feed.take(
            wanted.index(server),
            node_readings(vectors["node"], server.queries.node, nodes, now),
            pod_readings(vectors["pod"], now),
        )


class _Source(msgspec.Struct, eq=False):
    """One server with its queries; its times are steady seconds."""

    turn: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    answers: Answers = ()
    asked_at: float = -math.inf
    begun_at: float = -math.inf
    is_read: bool = False


def vectors_of(
    server: PrometheusProviderSpec, answers: Answers
) -> Mapping[str, Mapping[str, Sequence[Sample]]]:
    """The results by ``node`` or ``pod`` and resource name, without queries that have none."""
    vectors: dict[str, dict[str, Sequence[Sample]]] = {"node": {}, "pod": {}}
    queries = all_queries(server.queries.node, server.queries.pod)
    for (kind, resource, _), (answer, vector) in zip(queries, answers, strict=False):
        if answer.is_done:
            vectors[kind][resource] = vector
    return vectors
