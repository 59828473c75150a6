"""Measures processes and cluster every ten seconds."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import time
from dataclasses import dataclass, field
from typing import Any

from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session
from soak.diary import CLUSTER, PROCESSES, Diary
from soak.lease_watcher import LeaseWatcher
from soak.metrics_page import MetricsPage
from soak.processes import Life
from soak.replicas import Replica, Replicas
from soak.scenery import ENFORCED, EVENTS, NODES, PODS, RECORDS

EVERY_S = 10.0
FINAL = frozenset({"Predicted", "Settled", "Returned", "Blocked", "Failed", "Cancelled"})
SCHEDULED = "plimsoll_scheduler_pod_scheduling_sli_duration_seconds"
CYCLE = "plimsoll_scheduler_scheduling_algorithm_duration_seconds"
LAG = "plimsoll_event_loop_lag_seconds"


@dataclass(slots=True)
class _Earlier:
    """What the previous sample of a life was: when, its CPU seconds, its metrics."""

    at: float
    cpu_s: float
    page: MetricsPage = field(default_factory=MetricsPage)


class Samples:
    """Writes a row for each process and one for the cluster.

    Attributes:
        phase: What the soak does now: rest before, load, or rest after.
        cluster: The latest row of the cluster.
    """

    def __init__(
        self, session: Session, replicas: Replicas, server: Life, lease: LeaseWatcher, diary: Diary
    ) -> None:
        self._session = session
        self._replicas = replicas
        self._server = server
        self._lease = lease
        self._diary = diary
        self._earlier: dict[tuple[str, int], _Earlier] = {}
        self.phase = ""
        self.cluster: dict[str, Any] = {}

    async def take(self) -> None:
        """Every ten seconds, for ever."""
        while True:
            began = time.monotonic()
            await self.take_once()
            await asyncio.sleep(max(0.0, EVERY_S - (time.monotonic() - began)))

    async def take_once(self) -> None:
        """All rows."""
        self._process(self._server, None, {})
        for replica in self._replicas.both:
            if replica.ready and not replica.life.expected:
                await self._replica(replica)
        try:
            self.cluster = await self._of_cluster()
        except APIError as error:
            self._diary.note("retry", f"samples: {error}")
            return
        self._diary.write(CLUSTER, self.cluster)

    async def _replica(self, replica: Replica) -> None:
        life = replica.life
        status, text = await replica.ask(self._replicas.client, "/metrics")
        if status != 200 or life is not replica.life:
            return
        page, key = MetricsPage.read(text), (life.name, life.number)
        before = self._earlier.get(key)
        row: dict[str, Any] = {
            # Of the same moment as the figures: the probe may be of before a fail-over.
            "leads": int(page.total("plimsoll_leader_election_master_status")),
            "tasks": page.total("plimsoll_event_loop_tasks"),
            "inflight_bindings": page.total("plimsoll_scheduler_inflight_bindings"),
            "moves_in_flight": page.total("plimsoll_rebalancer_moves_in_flight"),
            "assumed_pods": page.total("plimsoll_scheduler_cache_size", type="assumed_pods"),
            "gc_full": page.total("python_gc_collections_total", generation="2"),
            "gc_uncollectable": page.total("python_gc_objects_uncollectable_total"),
            "events_dropped": page.total("plimsoll_events_dropped_total"),
            "watch_failures": page.total("plimsoll_watch_failures_total"),
            # A connection that is cut while the lease is read is the soak's deed, not a failure of ours.
            "contained_failures": page.total("plimsoll_contained_failures_total")
            - page.total("plimsoll_contained_failures_total", where="election"),
        }
        for queue in ("active", "backoff", "unschedulable", "gated"):
            row[queue] = page.total("plimsoll_scheduler_pending_pods", queue=queue)
        if before is not None:
            since_s = time.monotonic() - before.at
            requests, events = "plimsoll_rest_client_requests_total", "plimsoll_watch_events_total"
            row["requests_per_s"] = (page.total(requests) - before.page.total(requests)) / since_s
            of_pods = page.total(events, resource="pods") - before.page.total(events, resource="pods")
            row["pod_events_per_s"] = of_pods / since_s
            row["schedule_p50_s"] = page.quantile_since(before.page, SCHEDULED, 0.5)
            row["schedule_p99_s"] = page.quantile_since(before.page, SCHEDULED, 0.99)
            row["cycle_p99_s"] = page.quantile_since(before.page, CYCLE, 0.99)
            row["loop_lag_p99_s"] = page.quantile_since(before.page, LAG, 0.99)
        self._process(life, page, row)

    def _process(self, life: Life, page: MetricsPage | None, row: dict[str, Any]) -> None:
        found = life.figures()
        if found is None:
            return
        key, now = (life.name, life.number), time.monotonic()
        before = self._earlier.get(key)
        if before is not None:
            row["cpu_share"] = (found.cpu_s - before.cpu_s) / (now - before.at)
        self._earlier[key] = _Earlier(now, found.cpu_s, page or MetricsPage())
        memory = {name: getattr(found, name) for name in ("rss_mib", "pss_mib", "unique_mib")}
        counts = {"files": found.files, "threads": found.threads}
        identity = {"name": life.name, "life": life.number, "age_s": life.age_s, "phase": self.phase}
        self._diary.write(PROCESSES, {**identity, **memory, **counts, **row})

    async def _of_cluster(self) -> dict[str, Any]:
        waiting = await self._session.object("GET", PODS, params={"fieldSelector": "spec.nodeName="})
        now = dt.datetime.now(dt.UTC)
        ages = [
            (now - _time(each["metadata"]["creationTimestamp"])).total_seconds()
            for each in waiting["items"]
            if not each["metadata"].get("deletionTimestamp")
        ]
        records = (await self._session.object("GET", RECORDS))["items"]
        finished = [each for each in records if (each.get("status") or {}).get("phase") in FINAL]
        created = [_time(each["metadata"]["creationTimestamp"]) for each in finished]
        enforced = sum(each["spec"].get("policy") == ENFORCED for each in records)
        return {
            "phase": self.phase,
            "pods": await self._count(PODS),
            "waiting": len(ages),
            "oldest_waiting_s": max(ages, default=0.0),
            "nodes": await self._count(NODES),
            "events": await self._count(EVENTS),
            "records_enforced": enforced,
            "records_predicted": len(records) - enforced,
            "open_records": len(records) - len(finished),
            "oldest_finished_s": (now - min(created)).total_seconds() if created else 0.0,
            "lease_age_s": self._lease.taken(),
            "load": os.getloadavg()[0],
        }

    async def _count(self, path: str) -> int:
        page = await self._session.object("GET", path, params={"limit": "1"})
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))


def _time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)
