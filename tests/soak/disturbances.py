"""Disturbs the cluster of a soak: pods come and go, nodes flap, connections break."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import MERGE_PATCH, Session
from soak.diary import Diary
from soak.scenery import NAMESPACE, NODES, PODS
from soak.severable import SeverableConnections

#: Seconds between two flaps of nodes, and for how long a deleted one stays away (podgc waits 40 s).
FLAP_S, AWAY_S = 15.0, 60.0
#: Seconds between two cuts of all connections of the operators.
CUT_S = 170.0
KUBELET = "roadstead.test/kubelet"


async def churn(session: Session, deletions_per_s: float, seed: int = 1) -> None:
    """Delete so many running pods a second, for ever; their Deployments replace them."""
    rng, names, due = random.Random(seed), list[str](), 0.0
    listed_at = float("-inf")
    while True:
        began = time.monotonic()
        if began - listed_at > 30 or not names:
            listed_at = began
            names = await running_pods(session)
            rng.shuffle(names)
        due += deletions_per_s
        for _ in range(min(int(due), len(names))):
            try:
                await session.request("DELETE", f"{PODS}/{names.pop()}")
            except APIError as error:
                if error.status != 404:
                    raise
        due -= int(due)
        await asyncio.sleep(max(0.0, 1.0 - (time.monotonic() - began)))


async def running_pods(session: Session) -> list[str]:
    """Their names."""
    pods = (await session.object("GET", PODS, params={"fieldSelector": "status.phase=Running"}))["items"]
    return [each["metadata"]["name"] for each in pods if not each["metadata"].get("deletionTimestamp")]


class Flaps:
    """Nodes that are tainted, stopped, cordoned or deleted, and come back."""

    def __init__(self, session: Session, diary: Diary, seed: int = 2) -> None:
        self._session = session
        self._diary = diary
        self._random = random.Random(seed)
        self._away: dict[str, dict[str, Any]] = {}

    async def flap(self) -> None:
        """Another node and another way every few seconds, for ever."""
        ways = (self._taint, self._stop, self._cordon, self._delete)
        for way in itertools.cycle(ways):
            listed = await self._session.object("GET", NODES)
            node = self._random.choice(sorted(each["metadata"]["name"] for each in listed["items"]))
            self._diary.note("flap", f"{node} {way.__name__.lstrip('_')}")
            await way(node)

    async def restore(self) -> None:
        """Bring back what is away."""
        for name in list(self._away):
            await self._return(name)

    async def _taint(self, node: str) -> None:
        await self._for_a_while(
            node, {"taints": [{"key": NAMESPACE, "effect": "NoSchedule"}]}, {"taints": None}
        )

    async def _cordon(self, node: str) -> None:
        await self._for_a_while(node, {"unschedulable": True}, {"unschedulable": None})

    async def _for_a_while(self, node: str, change: dict[str, Any], undone: dict[str, Any]) -> None:
        await self._patch(node, {"spec": change})
        try:
            await asyncio.sleep(FLAP_S * 3 if "taints" in change else FLAP_S)
        finally:
            await self._patch(node, {"spec": undone})

    async def _stop(self, node: str) -> None:
        await self._patch(node, {"metadata": {"annotations": {KUBELET: "stopped"}}})
        try:
            await asyncio.sleep(FLAP_S)
        finally:
            await self._patch(node, {"metadata": {"annotations": {KUBELET: "simulated"}}})

    async def _delete(self, node: str) -> None:
        body = await self._session.object("GET", f"{NODES}/{node}")
        kept = {key: body["metadata"].get(key, {}) for key in ("name", "labels", "annotations")}
        self._away[node] = {"metadata": kept, "spec": {}, "status": body["status"]}
        await self._session.request("DELETE", f"{NODES}/{node}")
        await asyncio.sleep(AWAY_S)
        await self._return(node)

    async def _return(self, node: str) -> None:
        if (body := self._away.pop(node, None)) is not None:
            await self._session.request("POST", NODES, body)

    async def _patch(self, node: str, body: dict[str, Any]) -> None:
        await self._session.request("PATCH", f"{NODES}/{node}", body, content_type=MERGE_PATCH)


async def cut(connections: SeverableConnections, diary: Diary) -> None:
    """Break all connections of the operators now and then."""
    while True:
        await asyncio.sleep(CUT_S)
        diary.note("cut", f"{connections.cut()} connections")


async def unless_it_fails(what: str, work: Callable[[], Awaitable[None]], diary: Diary) -> None:
    """Do something again and again that must not end; say what failed."""
    while True:
        try:
            await work()
        except (APIError, OSError) as error:
            diary.note("retry", f"{what}: {error}"[:300])
            await asyncio.sleep(1)
