"""The development cluster with what a simulation's world has, as a command; its parts act on request.

POST /chaos/begin           create what features begin with
POST /chaos/act/FEATURE     people work with it
POST /chaos/end             what was switched off is on again
POST /chaos/late            create what is judged without faults
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Self

from aiohttp import web

from chaos.features import DEFINITIONS, EXTENDERS, FEATURE, FEATURES
from chaos.windows import Windows
from chaos.world import NAMESPACE, OURS
from roadstead.cluster import DevCluster, serve
from roadstead.controllers.context import Context
from roadstead.kubelets.kubelets import Kubelets, KubeletSettings
from roadstead.server.metrics_api import MetricsApi
from roadstead.store.api import Api, Write
from roadstead.store.subresources import bind
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from roadstead.values.status_errors import StatusError
from simulation.cluster import POLICIES, policy
from simulation.extenders import Manner, answered
from simulation.world.approvals import Approvals
from simulation.world.definitions import Definitions
from simulation.world.demands import Demands
from simulation.world.devices import Devices
from simulation.world.extenders import HOSTS, Extenders
from simulation.world.gangs import GROUP_LABEL, GROUPS, Gangs
from simulation.world.part import Part
from simulation.world.priorities import Priorities
from simulation.world.surges import Surges
from simulation.world.volumes import Volumes

#: The strategy that renews pods.
RENEWS = "PodLifeTime"

#: Members of a gang that no run's nodes have room for.
TOO_MANY = 60

#: The scheduler name whose pods have to pass the extenders.
EXTENDED = "plimsoll-extended"

#: Seconds of an extender that is slow, and of one that never answers.
SLOW_S, NEVER_S = (0.5, 12.0), 60.0


class LabelledApi:
    """An Api whose new objects, and their pods, are known by the feature that made them."""

    def __init__(self, api: Api, feature: str) -> None:
        self._api, self._feature = api, feature

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def create(self, resource: str, obj: Obj, *how: Write) -> Obj:
        """Create it in the namespace of the run."""
        meta: Obj = obj["metadata"]
        if "namespace" in meta:
            meta["namespace"] = NAMESPACE
        meta.setdefault("labels", {}).setdefault(FEATURE, self._feature)
        if resource == "nodes":
            meta["labels"] |= OURS
        template = (obj.get("spec") or {}).get("template")
        if template:
            template.setdefault("metadata", {}).setdefault("labels", {})[FEATURE] = self._feature
        return self._api.create(resource, obj, *how)

    def get(self, resource: str, namespace: str | None, name: str) -> Obj:
        """One object of the run's namespace, or of the cluster."""
        return self._api.get(resource, namespace and NAMESPACE, name)

    def find(self, resource: str, namespace: str | None, name: str) -> Obj | None:
        """The same, or None."""
        return self._api.find(resource, namespace and NAMESPACE, name)

    def delete(self, resource: str, namespace: str | None, name: str, **how: Any) -> object:
        """Delete it."""
        return self._api.delete(resource, namespace and NAMESPACE, name, **how)


class LivelyCluster:
    """What parts of a simulation's world take for its cluster."""

    def __init__(self, context: Context, feature: str) -> None:
        self.context = context
        self.api = LabelledApi(context.api, feature)

    def objects(self, resource: str) -> list[Obj]:
        """All objects of a resource; none where it is not served."""
        try:
            return self.context.api.list(resource)
        except StatusError:
            return []

    def bind(self, pod: Obj, node: str) -> None:
        """Another scheduler binds a pod."""
        name = pod["metadata"]["name"]
        target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        bind(self.context.api, (pod["metadata"]["namespace"], name), target, Write(), labelled=True)


class ExtenderServers:
    """Extenders over HTTP, one for each name of the simulation's; each may be unwell.

    Attributes:
        urls: Of each.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self.urls: dict[str, str] = {}
        self.manners: dict[str, Manner] = {}
        self.counts: Counter[Manner] = Counter()
        self.managers: dict[str, Callable[[str, str], bool]] = {}
        self._runners: list[web.ServerRunner] = []

    async def start(self) -> None:
        """Listen on loopback."""
        for host in HOSTS:
            runner = web.ServerRunner(web.Server(partial(self._answer, host)))
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self._runners.append(runner)
            address, port = runner.addresses[0][:2]
            self.urls[host] = f"http://{address}:{port}/scheduler"

    async def stop(self) -> None:
        """Close everything."""
        for runner in self._runners:
            await runner.cleanup()

    async def _answer(self, host: str, request: web.BaseRequest) -> web.StreamResponse:
        manner = self.manners.get(host, Manner.GOOD)
        self.counts[manner] += 1
        asked = await request.json()
        verb = request.path.rpartition("/")[2]
        if manner is Manner.UNREACHABLE and request.transport is not None:
            request.transport.abort()
        if manner is Manner.ERROR:
            return web.Response(status=500)
        if manner is Manner.SLOW:
            await asyncio.sleep(self._random.uniform(*SLOW_S))
        if manner is Manner.LOST:
            await asyncio.sleep(NEVER_S)
        content = answered(verb, asked, self.managers.get(host), is_picky=manner is Manner.PICKY)
        if manner is Manner.GARBAGE:
            content = content[: len(content) // 2]
        return web.Response(body=content, content_type="application/json")


class ChaosExtenders(Extenders):
    """Extenders that listen, for a scheduler name of their own: no pod that they place is moved."""

    def __init__(self, cluster: Any, random: Random, server: Any) -> None:
        super().__init__(cluster, random, server)
        self._urls: dict[str, str] = server.urls

    def begin(self) -> None:
        """The policy that names them, and its pods."""
        extenders = [
            self._extender(host, binds=False, manages=position > 0) for position, host in enumerate(HOSTS)
        ]
        scheduling = {"schedulerName": EXTENDED, "extenders": extenders}
        self.api.create(POLICIES, policy("extended", scheduling=scheduling))
        for _ in range(3):
            self.deployment(self.name("extended"), self.random.randint(1, 4), schedulerName=EXTENDED)

    def _extender(self, host: str, *, binds: bool, manages: bool) -> Obj:
        made = super()._extender(host, binds=binds, manages=manages)
        return {**made, "urlPrefix": self._urls[host]}


class EvictedVictims(Priorities):
    """Victims of preemption leave through the Eviction API."""

    def __init__(self, cluster: Any, random: Random) -> None:
        super().__init__(cluster, random, are_evicted=True)


class Renewed(Part):
    """A policy of a part that also moves its own pods whenever they are some seconds old.

    Attributes:
        policy: Its name.
        feature: Of its pods.
    """

    policy = feature = ""

    def begin(self) -> None:
        """Moves all the time."""
        super().begin()
        own = {"matchLabels": {FEATURE: self.feature}}
        args = {"maxPodLifeTimeSeconds": 15, "labelSelector": own}
        self._change(lambda strategies: [*strategies, {"name": RENEWS, "args": args}])

    def end(self) -> None:
        """No more than its own."""
        super().end()
        self._change(lambda strategies: [each for each in strategies if each["name"] != RENEWS])

    def _change(self, change: Callable[[list[Obj]], list[Obj]]) -> None:
        found = copied(self.api.get(POLICIES, None, self.policy))
        rebalancing = found["spec"]["rebalancing"]
        rebalancing["strategies"] = change(rebalancing["strategies"])
        self.api.update(POLICIES, found)


class ChaosSurges(Renewed, Surges):
    """Moves by rollouts, all the time."""

    policy, feature = "surge", "surges"


class ChaosApprovals(Renewed, Approvals):
    """Proposals, all the time."""

    policy, feature = "ask", "approvals"


class ChaosGangs(Gangs):
    """Gangs, and one in peace that fits in part and never as a whole."""

    def late(self) -> None:
        """More members than the cluster has room for."""
        name, requests = self.name("too-large"), {"cpu": "1500m", "memory": "64Mi"}
        container = {"name": "main", "image": "app:1", "resources": {"requests": requests}}
        self.create(GROUPS, name, apiVersion="plimsoll.dev/v1alpha1", spec={"minMember": TOO_MANY})
        self.deployment(name, TOO_MANY, {GROUP_LABEL: name}, containers=[container])


PARTS: dict[str, Callable[[Any, Random], Part]] = {
    "preemption": EvictedVictims,
    "demands": Demands,
    "gangs": ChaosGangs,
    "volumes": Volumes,
    "surges": ChaosSurges,
    "approvals": ChaosApprovals,
    "windows": Windows,
    "devices": Devices,
}


class World:
    """The parts of one run, each with random numbers of its own."""

    def __init__(self, seed: int, features: list[str]) -> None:
        self._seed, self._features = seed, features
        self._parts: dict[str, Part] = {}
        self.extenders = ExtenderServers(Random(f"extenders {seed}"))
        acts = {f"/chaos/act/{one}": partial(self._act, one) for one in (*FEATURES, DEFINITIONS)}
        self.actions: dict[str, Callable[[], None]] = {
            "/chaos/begin": self._begin,
            "/chaos/end": self._end,
            "/chaos/late": self._late,
            f"/chaos/end/{DEFINITIONS}": self._end_definitions,
            **acts,
        }

    async def open(self, context: Context) -> None:
        """Start the kubelets and the extenders, and make the parts."""
        Kubelets(context, KubeletSettings(start_s=(0.05, 1.0))).start()
        MetricsApi(context).start()
        await self.extenders.start()
        for name, part in PARTS.items():
            if name in self._features:
                self._parts[name] = part(LivelyCluster(context, name), Random(f"{name} {self._seed}"))
        if EXTENDERS in self._features:
            cluster = LivelyCluster(context, EXTENDERS)
            source = Random(f"{EXTENDERS} {self._seed}")
            self._parts[EXTENDERS] = ChaosExtenders(cluster, source, self.extenders)
        definitions: Any = LivelyCluster(context, DEFINITIONS)
        self._parts[DEFINITIONS] = Definitions(definitions, Random(f"{DEFINITIONS} {self._seed}"))

    def _act(self, name: str) -> None:
        self._parts[name].act()

    def _begin(self) -> None:
        for part in self._parts.values():
            part.begin()

    def _end_definitions(self) -> None:
        self._parts[DEFINITIONS].end()

    def _late(self) -> None:
        for part in self._parts.values():
            if isinstance(part, ChaosGangs):
                part.late()

    def _end(self) -> None:
        """Definitions first: other parts put in order what they bring back."""
        for part in reversed(self._parts.values()):
            with suppress(StatusError):
                part.end()


class LivelyDevCluster(DevCluster):
    """Opens the world with the cluster."""

    def __init__(self, world: World) -> None:
        super().__init__(kubelets=None, actions=world.actions)
        self._world = world

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self._world.open(self._context)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._world.extenders.stop()
        await super().__aexit__(*exc)


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--features", nargs="*", default=list(FEATURES))
    chosen = parser.parse_args()
    cluster = LivelyDevCluster(World(chosen.seed, chosen.features))
    asyncio.run(serve(cluster, chosen.kubeconfig, lambda _: None))


if __name__ == "__main__":
    main()
