"""Serves a large cluster over TLS whose pods are made when they are read.

    python benchmarks/synthetic_cluster.py KUBECONFIG --nodes 50000 --pods 500000

The API server is the development cluster's. A pod is held as the number of its application, its own number
and its node, some 300 bytes here; its JSON, 6 to 9 kB with managedFields, volumes, probes and status as a
kubelet writes it, is put together each time that it is served. A tenth of the pods are of DaemonSets, each
with the affinity to its node; the others have a ReplicaSet with 50 pods.

A POST to a path below ``/synthetic/`` changes the cluster: ``pods`` creates a wave of pods that wait for a
node, of fifty owners in turn, ``rollout`` the same owner by owner; ``events/RATE`` starts that many pod
events a second, ``events/0`` ends them. Of ten events seven change a status, one begins a deletion, one ends
it, one adds a pod on a node. What was bound, which policies have run and how many events were sent is in the
file KUBECONFIG.seen, a line each.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import ssl
import time
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import yaml
from pod_documents import (
    MOMENT,
    NAMESPACES,
    SCHEDULER,
    PodTemplates,
    namespace_of,
    owner_of,
    pod_document,
    pod_name,
)

from roadstead.admission.expressions import policy_fault
from roadstead.assembly import create_built_in_objects, extended_server, utc_now
from roadstead.certificates import loopback_identity
from roadstead.cluster import kubeconfig, new_token, write_privately
from roadstead.definitions.device_expressions import device_expression_fault
from roadstead.kinds import events
from roadstead.kinds.builtin import built_in_kinds
from roadstead.kubelets.nodes import make_node, registered
from roadstead.schemas.timestamps import timestamp_of
from roadstead.store.api import Api
from roadstead.store.store import Change, Entry, EventType

if TYPE_CHECKING:
    from roadstead.values.resources import Obj, Resource

CRDS = Path(__file__).parents[1] / "crds"
PODS_PER_OWNER = 50

#: Strategies as most people have them, with thresholds that plan nothing in a cluster that is in balance.
STRATEGIES: list[dict[str, Any]] = [
    {"name": "RemoveDuplicates"},
    {
        "name": "RemovePodsViolatingNodeAffinity",
        "args": {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]},
    },
    {"name": "RemovePodsViolatingNodeTaints"},
    {"name": "RemovePodsViolatingInterPodAntiAffinity"},
    {"name": "RemovePodsViolatingTopologySpreadConstraint"},
    {
        "name": "LowNodeUtilization",
        "args": {
            "thresholds": {"cpu": 10, "memory": 10, "pods": 5},
            "targetThresholds": {"cpu": 60, "memory": 60, "pods": 60},
        },
    },
]


def a_policy() -> dict[str, Any]:
    """Serves all pods, and predicts moves every five minutes."""
    rebalancing = {"mode": "DryRun", "schedule": {"intervalSeconds": 300}, "strategies": STRATEGIES}
    spec = {"scheduling": {"schedulerName": SCHEDULER}, "rebalancing": rebalancing}
    return {"metadata": {"name": SCHEDULER}, "spec": spec}


class MadePod(Entry):
    """A pod of a template; its document is made when it is read."""

    __slots__ = ("app", "number", "row", "state", "templates")

    def __init__(
        self, templates: PodTemplates, number: int, app: int, row: int, revision: int, state: int = 0
    ) -> None:
        self.templates, self.number, self.app, self.row, self.state = templates, number, app, row, state
        self.revision = revision
        self.managers = ()
        self.converted = None

    @property
    def obj(self) -> Obj:  # type: ignore[override] # made, not kept
        """The object."""
        found: Obj = orjson.loads(self.raw)
        return found

    @property
    def raw(self) -> bytes:
        """The document."""
        return self.templates.document(self.number, self.app, self.row, self.revision, self.state)

    def forget(self) -> None:
        """There is nothing to forget."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return namespace_of(abs(self.app)), pod_name(self.number, self.app)

    def later(self, revision: int, state: int) -> MadePod:
        """Another state of it."""
        return MadePod(self.templates, self.number, self.app, self.row, revision, state)


class MadeApi(Api):
    """An API that does not look into a pod for its version."""

    def served(self, resource: Resource, entry: Entry) -> Entry:
        """Pods have one version."""
        return entry if isinstance(entry, MadePod) else super().served(resource, entry)


# -- the cluster -----------------------------------------------------------------------------------------


def a_node(number: int, name: str) -> dict[str, Any]:
    """A node of 32 cores as its kubelet reports it, with thirty images."""
    node = make_node(name, cpu="32", memory="128Gi", zone=f"zone-{'abc'[number % 3]}")
    node["metadata"]["annotations"] = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    node["status"] = registered(node, number, 1_767_225_600.0)
    node["status"]["images"] = [
        {
            "names": [
                f"registry.example/team/app-{(number * 7 + each) % 500:05}:1.4.{(number * 7 + each) % 10}",
                f"registry.example/team/app-{(number * 7 + each) % 500:05}@sha256:{'0123456789abcdef' * 4}",
            ],
            "sizeBytes": 50_000_000 + 1000 * ((number * 7 + each) % 500),
        }
        for each in range(30)
    ]
    return node


class SyntheticCluster:
    """Nodes, owners and pods behind an API."""

    def __init__(self, nodes: int, pods: int, waiting: int, seen: Path) -> None:
        kinds = built_in_kinds(device_expression_fault, policy_fault, lambda: timestamp_of(utc_now()))
        self.api = MadeApi(kinds, converters={"events": events.converted}, clock=utc_now)
        create_built_in_objects(self.api)
        self.names = [f"node-{number:05}" for number in range(nodes)]
        self.templates = PodTemplates(self.names)
        self.apps = max(1, pods // PODS_PER_OWNER)
        self._numbers = count(1)
        self._seen = seen
        self._pump: asyncio.Task[None] | None = None
        self._revision = 0
        self._bound = 0
        self._placed: list[tuple[str, str]] = []
        self._ending: list[tuple[str, str]] = []
        self._fill(pods)
        self.wave(waiting)
        self.api.store.collection("pods").subscribers.append(self._pod)

    def extend(self) -> None:
        """Create what needs the definitions of custom resources."""
        for file in sorted(CRDS.glob("*.yaml")):
            for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
                self.api.create("customresourcedefinitions.apiextensions.k8s.io", document)
        self.api.create("schedulingpolicies.plimsoll.dev", a_policy())
        self.api.subscribe("schedulingpolicies.plimsoll.dev", self._policy)

    def give_back(self) -> None:
        """Create the lease of an operator that has ended and given it back."""
        moment = {"acquireTime": f"{MOMENT[:-1]}.000000Z", "renewTime": f"{MOMENT[:-1]}.000000Z"}
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 1, **moment}
        metadata = {"name": "plimsoll", "namespace": "kube-system"}
        self.api.create("leases.coordination.k8s.io", {"metadata": metadata, "spec": spec})

    def _fill(self, pods: int) -> None:
        for number in range(NAMESPACES):
            self.api.create("namespaces", {"metadata": {"name": namespace_of(number)}})
        for number, name in enumerate(self.names):
            self._commit("nodes", ("", name), a_node(number, name))
        for app in range(1, self.apps + 1):
            _, name, uid = owner_of(app)
            namespace = namespace_of(app)
            template = orjson.loads(
                pod_document(app, daemon=False, placed=False).replace(b"@restarts@", b"0")
            )
            labels = template["metadata"]["labels"]
            metadata = {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": MOMENT}
            spec = {
                "replicas": PODS_PER_OWNER,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
            }
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec}
            self._commit("replicasets.apps", (namespace, name), {**owner, "status": {}})
        made = {}
        revision = self.api.store.revision
        for number in range(pods):
            is_daemon = number % 10 == 0
            app = -(1 + number // 10 % 5) if is_daemon else 1 + number % self.apps
            row = number // 10 % len(self.names) if is_daemon else number * 7919 % len(self.names)
            pod = MadePod(self.templates, next(self._numbers), app, row, revision + number + 1)
            made[pod.key] = pod
        collection = self.api.store.collection("pods")
        collection.entries.update(made)
        collection._order = sorted(collection.entries)  # noqa: SLF001 - half a million in one step
        self.api.store.revision += pods
        collection.complete_since = self.api.store.revision
        self._placed = list(made)

    def _commit(self, collection: str, key: tuple[str, str], obj: dict[str, Any]) -> None:
        kind = {"nodes": "Node"}.get(collection)
        if kind:
            obj = {"apiVersion": "v1", "kind": kind, **obj}
            obj["metadata"] |= {"uid": f"node-uid-{key[1]}", "creationTimestamp": MOMENT}
        self.api.store.commit(collection, "ADDED", key, obj)

    def wave(self, size: int) -> None:
        """Create pods that wait for a node, of fifty owners that take turns."""
        for number in range(size):
            self._create(1 + number * 7 % min(self.apps, 50))

    def rollout(self, size: int) -> None:
        """Create pods that wait for a node, owner by owner, as ReplicaSets do that are scaled one by one."""
        for number in range(size):
            self._create(1 + (50 + number // PODS_PER_OWNER) % self.apps)

    def _create(self, app: int) -> None:
        self._write("ADDED", MadePod(self.templates, next(self._numbers), app, -1, 0))

    def _write(self, kind: EventType, pod: MadePod) -> None:
        """Commit a pod without looking into it."""
        store, collection = self.api.store, self.api.store.collection("pods")
        store.revision += 1
        pod.revision = store.revision
        key = pod.key
        previous = collection.entries.get(key)
        if kind == "DELETED":
            collection.drop(key)
        elif previous is None:
            collection.put(key, pod)
        else:
            collection.entries[key] = pod
        change = Change(kind, pod, previous)
        collection.note(change)
        store._notify("pods", collection, change)  # noqa: SLF001 - as Store.commit does

    def begin_events(self, rate: int) -> None:
        """So many pod events a second from now on."""
        if self._pump is not None:
            self._pump.cancel()
            self._pump = None
        if rate:
            self._pump = asyncio.get_running_loop().create_task(self._events(rate))

    async def _events(self, rate: int) -> None:
        """Send events evenly, a twentieth of a second's at a time."""
        began, sent = time.monotonic(), 0
        while True:
            await asyncio.sleep(0.05)
            due = int((time.monotonic() - began) * rate)
            while sent < due:
                self._event(sent)
                sent += 1
                if sent % rate == 0:
                    self._note(f"sent {rate}")

    def _event(self, number: int) -> None:
        entries = self.api.store.collection("pods").entries
        step = number % 10
        if step == 9:
            row = number * 31 % len(self.names)
            pod = MadePod(self.templates, next(self._numbers), 1 + number % self.apps, row, 0)
            self._placed.append(pod.key)
            self._write("ADDED", pod)
            return
        if step == 8 and self._ending:
            found = entries.get(self._ending.pop(0))
            if isinstance(found, MadePod):
                self._write("DELETED", found.later(0, found.state))
            return
        place = number * 104_729 % len(self._placed)
        found = entries.get(self._placed[place])
        if not isinstance(found, MadePod):
            return
        if step == 7:
            self._placed[place] = self._placed[-1]
            self._placed.pop()
            self._ending.append(found.key)
            self._write("MODIFIED", found.later(0, -1))
        else:
            self._write("MODIFIED", found.later(0, found.state + 1))

    def _pod(self, change: Change) -> None:
        if isinstance(change.entry, MadePod) or change.type != "MODIFIED":
            return
        if isinstance(change.previous, MadePod) and change.previous.row < 0:
            spec = change.entry.obj["spec"]
            if spec.get("nodeName"):
                self._bound += 1
                if self._bound == 1 or self._bound % 100 == 0:
                    self._note(f"bound {self._bound}")

    def _policy(self, _: EventType, new: Obj, old: Obj | None) -> None:
        runs = [((each or {}).get("status") or {}).get("lastRun") for each in (new, old)]
        if runs[0] and runs[0] != runs[1]:
            self._note(f"ran {orjson.dumps(runs[0]).decode()}")

    def _note(self, line: str) -> None:
        with self._seen.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def tls_of() -> tuple[ssl.SSLContext, bytes]:
    """A context of a server on loopback, and its authority."""
    identity = loopback_identity()
    return identity.context, identity.certificate


async def serve(chosen: argparse.Namespace) -> None:
    """Serve until SIGTERM."""
    file: Path = chosen.kubeconfig
    wave: int = chosen.wave
    seen = file.with_suffix(".seen")
    seen.unlink(missing_ok=True)
    cluster = SyntheticCluster(chosen.nodes, chosen.pods, chosen.waiting, seen)
    if chosen.restart:
        cluster.give_back()
    actions = {
        "/synthetic/pods": partial(cluster.wave, wave),
        "/synthetic/rollout": partial(cluster.rollout, wave),
    }
    for rate in (0, 100, 500, 1000, 2000):
        actions[f"/synthetic/events/{rate}"] = partial(cluster.begin_events, rate)
    token = new_token()
    server = extended_server(cluster.api, token, actions=actions)
    cluster.extend()
    tls, certificate = tls_of()
    url = await server.start(tls=tls)
    write_privately(file, kubeconfig(url, token, certificate=certificate))
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    cluster.begin_events(0)
    await server.stop()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kubeconfig", type=Path, help="is written once requests are answered")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--waiting", type=int, default=100, help="pods without a node at the beginning")
    parser.add_argument("--wave", type=int, default=2000, help="pods that a POST to /synthetic/pods creates")
    parser.add_argument("--restart", action="store_true", help="an earlier operator has given its lease back")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
