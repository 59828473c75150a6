"""A responder of lifecycle.k8s.io: it takes its turn, tells how far it is, deletes the pod when told to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from e2e.polls import LAST_PACE_S

if TYPE_CHECKING:
    from e2e.scene import Obj, Scene

LIFECYCLE = "/apis/lifecycle.k8s.io/v1alpha1"
APPLY = "application/apply-patch+yaml"
NAME = "acme.io/migrator"


@dataclass(slots=True)
class Responder:
    """Responds for the pods of a scene that name it.

    Attributes:
        scene: Where the pods are.
        may_migrate: Set when it may delete pods; until then it reports progress.
        states: The states of its turns that it has seen, in order.
    """

    scene: Scene
    may_migrate: asyncio.Event = field(default_factory=asyncio.Event)
    states: list[str] = field(default_factory=list)

    async def run(self) -> None:
        """Respond until cancelled."""
        while True:
            for eviction in await evictions(self.scene, labelSelector=NAME):
                await self._respond(eviction)
            await asyncio.sleep(LAST_PACE_S)

    async def _respond(self, eviction: Obj) -> None:
        status = eviction.get("status", {})
        turn = next((one for one in status.get("targetResponders", ()) if one["name"] == NAME), None)
        if turn is None:
            return
        if self.states[-1:] != [turn["state"]]:
            self.states.append(turn["state"])
        report = next(one for one in status["responders"] if one["name"] == NAME)
        if turn["state"] != "Active" or "completionTime" in report:
            return
        if not self.may_migrate.is_set():
            if "message" not in report:
                await self._report(eviction, heartbeatTime=_now(), message="copied 40 % of the memory")
            return
        target = eviction["spec"]["target"]["pod"]
        body = {"preconditions": {"uid": target["uid"]}}
        await self.scene.speaker.request("DELETE", f"{self.scene.path('pods')}/{target['name']}", body)
        await self._report(eviction, heartbeatTime=_now(), message="migrated", completionTime=_now())

    async def _report(self, eviction: Obj, **told: str) -> None:
        """Say how far it is, as the protocol asks: by server-side apply of its own entry."""
        name = eviction["metadata"]["name"]
        document = {
            "apiVersion": "lifecycle.k8s.io/v1alpha1",
            "kind": "Eviction",
            "metadata": {"name": name},
            "status": {"responders": [{"name": NAME, **told}]},
        }
        path = f"{self.scene.path('evictions', LIFECYCLE)}/{name}/status"
        answer = await self.scene.speaker.request(
            "PATCH", path, document, sends=APPLY, fieldManager=NAME.replace("/", "-"), force="true"
        )
        if answer.status != 422:  # its turn has ended since it looked; the next look sees that
            answer.accepted()


async def evictions(scene: Scene, **query: str) -> list[Obj]:
    """The Evictions of the scene."""
    return await scene.items(scene.path("evictions", LIFECYCLE), **query)


async def requests(scene: Scene) -> list[Obj]:
    """The EvictionRequests of the scene."""
    return await scene.items(scene.path("evictionrequests", LIFECYCLE))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
