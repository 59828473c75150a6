"""ChaosDeeds are what people, machines and other programs do during a run on sockets, one after the other."""

from __future__ import annotations

import asyncio
import datetime as dt
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from chaos.certificates import VALID, Authority
from chaos.faults import OF_MACHINES, OF_PEOPLE, STORMS, ChaosFaults
from chaos.faults import ChaosKind as K
from chaos.features import Features
from chaos.lives import Replica
from chaos.planes import Plane
from chaos.proxy import Mood
from chaos.world import BUDGETS, DEPLOYMENTS, LEASE, NODES, PODS, POLICIES, RECORDS, RENEWS, TIDIES, World
from e2e.speaker import STRATEGIC
from promises.commits import Obj

#: Mean seconds between two faults of machines, between two deeds of people, and seconds that a state lasts.
MACHINES_S, PEOPLE_S, PASSING_S = 9.0, 0.5, (2.0, 40.0)

#: Seconds that an operator is paused, that connections are refused or swallowed, and that the API server is
#: held: less than a leader leaves between its last write and the end of its lease.
PAUSES_S, AWAY_S, HELD_S = (0.05, 2.0, 8.0, 12.0, 20.0, 30.0), (1.0, 25.0), (0.2, 3.0)

#: Seconds from the end of a token until its successor is in the file.
TOKEN_S = (0.0, 12.0)

#: Of a certificate that has expired by the clock of an operator that is an hour behind as well.
EXPIRED = dt.timedelta(hours=-2)

#: Seconds that a node is tainted: policies that move pods away from it need some.
MAINTENANCE_S = (5.0, 60.0)

TAINT = "plimsoll.dev/chaos"

#: Attempts at a change that others' changes have come before.
TRIES = 10

Undo = Callable[[], Awaitable[object]]


class ChaosDeeds:
    """Does one after the other, as the seed draws them, until cancelled."""

    def __init__(
        self,
        world: World,
        features: Features,
        plane: Plane,
        replicas: Sequence[Replica],
        authority: Authority,
        faults: ChaosFaults,
    ) -> None:
        self._world = world
        self._features = features
        self._authority = authority
        self._plane = plane
        self._replicas = replicas
        self._faults = faults
        self._random = faults.random
        self._passing: dict[asyncio.Task[None], Undo] = {}
        self._made = 0
        self._ways: dict[K, Callable[[], Awaitable[bool]]] = {
            K.REFUSED: partial(self._moody, Mood.REFUSES, 1),
            K.PARTITION: partial(self._moody, Mood.SWALLOWS, 1),
            K.OUTAGE: partial(self._moody, Mood.REFUSES, 2),
            K.SERVER_HELD: self._hold_server,
            K.SERVER_KILLED: self._kill_server,
            K.KILLED: self._kill,
            K.PAUSED: self._pause,
            K.STOPPED: self._stop,
            K.LEASE_STOLEN: self._steal,
            **{kind: partial(self._storm, kind) for kind in STORMS},
            K.NO_NAMES: self._lose_names,
            K.TOKEN_EXPIRED: self._expire_token,
            K.CERTIFICATE_RENEWED: partial(self._renew_certificate, has_expired=False),
            K.CERTIFICATE_EXPIRED: partial(self._renew_certificate, has_expired=True),
            K.CLOCK_STEPPED: self._step_clock,
            K.VERSION_CHANGED: self._change_version,
            K.DEFINITION_DELETED: self._delete_definition,
            K.POD_DELETED: self._delete_pod,
            K.SCALED: self._scale,
            K.NODE_TAINTED: self._taint,
            K.NODE_FLAPPED: self._flap,
            K.NODE_CORDONED: self._cordon,
            K.NODE_REPLACED: self._replace_node,
            K.BUDGET_CHANGED: self._change_budget,
            K.POLICY_EDITED: self._edit_policy,
            K.RECORD_DELETED: self._delete_record,
            K.ROOM_TAKEN: self._take_room,
            K.BOUND_BY_RIVAL: self._bind_as_rival,
            K.EVICTED_BY_RIVAL: self._evict_as_rival,
            K.PEOPLE_AT_WORK: self._features.work,
        }

    async def run(self) -> None:
        """Act until cancelled."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._act(OF_MACHINES, MACHINES_S))
            both.create_task(self._act(OF_PEOPLE, PEOPLE_S))

    async def _act(self, shares: Mapping[K, float], every_s: float) -> None:
        while True:
            await asyncio.sleep(self._random.expovariate(1.0 / every_s))
            kind = self._faults.deed(shares)
            if await self._ways[kind]():
                self._faults.count(kind)

    async def end(self) -> None:
        """What was to pass has passed, and both operators run."""
        passing, self._passing = self._passing, {}
        for task, undo in passing.items():
            task.cancel()
            await undo()
        await self._features.end()
        await self._world.ask("DELETE", f"{POLICIES}/{RENEWS}")
        for replica in self._replicas:
            replica.control(ahead_s=0, no_names=False)
            replica.be(Mood.OPEN)
            if replica.life is not None:
                replica.resume(replica.life)

    def _later(self, undo: Undo, seconds: float | None = None) -> bool:
        """Undo something in a while."""
        wait_s = self._random.uniform(*PASSING_S) if seconds is None else seconds

        async def passed() -> None:
            await asyncio.sleep(wait_s)
            await undo()

        task = asyncio.create_task(passed())
        self._passing[task] = undo
        task.add_done_callback(lambda done: self._passing.pop(done, None))
        return True

    async def _changed(self, path: str, change: Obj, sends: str = "") -> bool:
        return (await self._world.ask("PATCH", path, change, sends)).status == 200

    async def _chosen(self, path: str) -> Any | None:
        found = await self._world.items(path)
        return self._random.choice(found) if found else None

    # -- connections and processes -------------------------------------------------------------------------

    async def _moody(self, mood: Mood, number: int) -> bool:
        chosen = self._random.sample(list(self._replicas), number)

        async def calm() -> None:
            for replica in chosen:
                replica.be(Mood.OPEN)

        for replica in chosen:
            replica.be(mood)
        return self._later(calm, self._random.uniform(*AWAY_S))

    async def _hold_server(self) -> bool:
        if not self._plane.signal(signal.SIGSTOP):
            return False
        await asyncio.sleep(self._random.uniform(*HELD_S))
        self._plane.signal(signal.SIGCONT)
        return True

    async def _kill_server(self) -> bool:
        return await self._plane.restart(self._random.uniform(0.0, 5.0))

    async def _kill(self) -> bool:
        return self._random.choice(self._replicas).kill()

    async def _pause(self) -> bool:
        return self._random.choice(self._replicas).pause(self._random.choice(PAUSES_S))

    async def _stop(self) -> bool:
        return self._random.choice(self._replicas).stop()

    async def _steal(self) -> bool:
        change = {"spec": {"holderIdentity": "somebody-else", "leaseDurationSeconds": 15}}
        return await self._changed(LEASE, change)

    # -- what machines rely on -----------------------------------------------------------------------------

    async def _storm(self, kind: K) -> bool:
        if self._faults.storm is not None:
            return False
        self._faults.storm = kind

        async def over() -> None:
            self._faults.storm = None

        return self._later(over, self._random.uniform(*AWAY_S))

    async def _lose_names(self) -> bool:
        replica = self._random.choice(self._replicas)

        async def back() -> None:
            replica.control(no_names=False)

        return replica.control(no_names=True) and self._later(back, self._random.uniform(*AWAY_S))

    async def _expire_token(self) -> bool:
        written = self._random.choice(self._replicas).expire_token()
        if written is None:
            return False

        async def replaced() -> None:
            await asyncio.to_thread(written)

        return self._later(replaced, self._random.uniform(*TOKEN_S))

    async def _renew_certificate(self, *, has_expired: bool) -> bool:
        if not has_expired:
            await self._issue(VALID)
            return True
        await self._issue(EXPIRED)
        return self._later(partial(self._issue, VALID), self._random.uniform(*AWAY_S))

    async def _issue(self, until: dt.timedelta) -> None:
        """Show another certificate; connections that show the old one end."""
        await asyncio.to_thread(self._authority.issue, until)
        for replica in self._replicas:
            if replica.life is not None:
                replica.life.proxy.cut_all()

    async def _step_clock(self) -> bool:
        ahead_s = self._random.choice((-3600, -3600, 0, 3600, 3600))
        return self._random.choice(self._replicas).control(ahead_s=ahead_s)

    async def _change_version(self) -> bool:
        return self._random.choice(self._replicas).change_version()

    async def _delete_definition(self) -> bool:
        return await self._features.delete_definition() and self._later(
            self._features.restore_definitions, self._random.uniform(*AWAY_S)
        )

    # -- other schedulers and deschedulers -----------------------------------------------------------------

    async def _bind_as_rival(self) -> bool:
        waiting = [
            each
            for each in await self._world.items(PODS)
            if not each["spec"].get("nodeName") and not each["spec"].get("resourceClaims")
        ]  # a scheduler that binds pods without their devices is not one
        if not waiting:
            return False
        name = self._random.choice(waiting)["metadata"]["name"]
        target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": self._node()}}
        binding = {"apiVersion": "v1", "kind": "Binding", **target}
        return (await self._world.ask("POST", f"{PODS}/{name}/binding", binding)).status == 201

    async def _evict_as_rival(self) -> bool:
        pod = await self._chosen(PODS)
        if pod is None:
            return False
        name = pod["metadata"]["name"]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        return (await self._world.ask("POST", f"{PODS}/{name}/eviction", eviction)).status == 201

    def _node(self) -> str:
        return self._random.choice(self._world.nodes)

    # -- nodes ---------------------------------------------------------------------------------------------

    async def _taint(self) -> bool:
        path = f"{NODES}/{self._node()}"
        taint = {"key": TAINT, "value": "yes", "effect": self._random.choice(("NoSchedule", "NoExecute"))}
        did = await self._set_taint(path, taint)
        return did and self._later(partial(self._set_taint, path, None), self._random.uniform(*MAINTENANCE_S))

    async def _set_taint(self, path: str, taint: Obj | None) -> bool:
        """Replace our taint of a node; patches replace the whole list, so no change may come between."""
        for _ in range(TRIES):
            node = (await self._world.ask("GET", path)).body
            if "metadata" not in node or "spec" not in node:
                return False
            taints = [each for each in node["spec"].get("taints") or () if each["key"] != TAINT]
            wanted = [*taints, taint] if taint else taints
            version = {"resourceVersion": node["metadata"]["resourceVersion"]}
            if await self._changed(path, {"metadata": version, "spec": {"taints": wanted}}):
                return True
        return False

    async def _flap(self) -> bool:
        name = self._random.choice(self._world.nodes)
        path = f"{NODES}/{name}/status"

        def ready(status: str) -> Obj:
            condition = {"type": "Ready", "status": status, "reason": "Chaos", "message": "chaos"}
            return {"status": {"conditions": [condition]}}

        async def back() -> None:
            self._world.silent.discard(name)
            await self._changed(path, ready("True"), STRATEGIC)

        self._world.silent.add(name)
        return await self._changed(path, ready("False"), STRATEGIC) and self._later(back)

    async def _cordon(self) -> bool:
        path = f"{NODES}/{self._random.choice(self._world.nodes)}"
        undo = partial(self._changed, path, {"spec": {"unschedulable": None}})
        return await self._changed(path, {"spec": {"unschedulable": True}}) and self._later(undo)

    async def _replace_node(self) -> bool:
        name = self._random.choice(self._world.nodes)
        if (await self._world.ask("DELETE", f"{NODES}/{name}")).status != 200:
            return False
        return self._later(partial(self._world.add_node, name))

    # -- pods, workloads and policies ----------------------------------------------------------------------

    async def _delete_pod(self) -> bool:
        pod = await self._chosen(PODS)
        if pod is None:
            return False
        options = {"gracePeriodSeconds": 0} if self._random.random() < 0.3 else None
        return (await self._world.ask("DELETE", f"{PODS}/{pod['metadata']['name']}", options)).status == 200

    async def _scale(self) -> bool:
        path = f"{DEPLOYMENTS}/{self._random.choice(self._world.apps)}"
        return await self._changed(path, {"spec": {"replicas": self._random.randint(0, 8)}})

    async def _change_budget(self) -> bool:
        budget = await self._chosen(BUDGETS)
        if budget is None:
            return False
        change = {"spec": {"maxUnavailable": self._random.choice((0, 1, 2))}}
        return await self._changed(f"{BUDGETS}/{budget['metadata']['name']}", change)

    async def _edit_policy(self) -> bool:
        change = {"schedule": {"intervalSeconds": self._random.choice((5, 6, 8))}}
        mode = {"mode": self._random.choice(("DryRun", "Enforce", "Enforce"))}
        return await self._changed(f"{POLICIES}/{TIDIES}", {"spec": {"rebalancing": {**change, **mode}}})

    async def _delete_record(self) -> bool:
        record = await self._chosen(RECORDS)
        if record is None:
            return False
        return (await self._world.ask("DELETE", f"{RECORDS}/{record['metadata']['name']}")).status == 200

    async def _take_room(self) -> bool:
        self._made += 1
        name, node = f"foreign-{self._made}", self._random.choice(self._world.nodes)
        wants = {"cpu": self._random.choice(("200m", "1"))}
        container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": wants}}
        spec = {"schedulerName": "somebody-else", "containers": [container]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        if (await self._world.ask("POST", PODS, pod)).status != 201:
            return False
        target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        binding = {"apiVersion": "v1", "kind": "Binding", **target}
        await self._world.ask("POST", f"{PODS}/{name}/binding", binding)
        return self._later(partial(self._world.ask, "DELETE", f"{PODS}/{name}"))
