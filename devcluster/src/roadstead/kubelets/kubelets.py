"""Simulates kubelets: bound pods start, run, end and are removed, as their annotations direct.

Only nodes with the annotation ``roadstead.test/kubelet: simulated`` have one (``nodes``); with the value
``stopped`` a node's kubelet falls silent. Annotations of a pod under ``roadstead.test/``, times in seconds,
direct its life:

==================  ================================================================================
``start-after``     from bound to Running (default: a short time, see ``KubeletSettings``)
``ready-after``     from Running to Ready; ``never`` keeps it unready (default 0)
``start-error``     a reason such as ImagePullBackOff for which its containers never start
``exit-after``      from Running to the end of its containers (default: they run until deleted)
``exit-code``       exit code of the containers (default 0)
==================  ================================================================================

Containers that end are started again by the pod's restartPolicy, after a growing delay.

Admission is the kubelet's: it sums the requests of the admitted pods that have not ended, and a pod that
does not fit fails with OutOfcpu, OutOfmemory, OutOfpods and so on, which reveals a scheduler that
overcommits nodes. Extended resources that the node does not have count for nothing. A pod with claims on
devices starts when each is allocated to its node and reserved for it.

Differs: the steps before Running (ContainerCreating) are not written, so the start of a pod is one write.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roadstead.controllers.ownership import key_of
from roadstead.controllers.pod_state import has_condition, is_finished, is_terminating, phase_of
from roadstead.kubelets import pods
from roadstead.kubelets.claims import claims_fault, resources_of_node
from roadstead.kubelets.node_resources import NodeResources
from roadstead.kubelets.nodes import (
    SIMULATED,
    STOPPED,
    address_of,
    kubelet_of,
    lost,
    pod_address,
    registered,
)
from roadstead.schemas.quantities import amounts, pod_requests
from roadstead.schemas.timestamps import to_microtime
from roadstead.values.label_selectors import node_fits
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

PREFIX = "roadstead.test/"
LEASES = "leases.coordination.k8s.io"
LEASE_NAMESPACE = "kube-node-lease"
LEASE_S, RENEW_S = 40, 10.0
COMPONENT = "kubelet"


@dataclass(frozen=True, slots=True)
class KubeletSettings:
    """The delays of simulated kubelets, in seconds.

    Attributes:
        start_s: the range from bound to Running; a pod's uid decides the value.
        longest_grace_s: the maximum delay of a deletion; a shorter grace period of the pod counts.
        first_restart_s: the delay of a container's first restart; it doubles with each restart.
        last_restart_s: the maximum of this delay.
        claims_again_s: the delay until the claims of a waiting pod are checked again.
        heartbeats: renew a Lease for each node every 10 s.
    """

    start_s: tuple[float, float] = (0.05, 0.2)
    longest_grace_s: float = 1.0
    first_restart_s: float = 10.0
    last_restart_s: float = 300.0
    claims_again_s: float = 0.5
    heartbeats: bool = False


@dataclass(slots=True)
class _Kubelet(NodeResources):
    """The state of one kubelet: the node's number and resources."""

    number: int = 0
    silent: bool = False


@dataclass(slots=True)
class _Plan:
    """The times of a pod's next steps, in seconds since the epoch; None for never."""

    start_at: float
    ready_at: float | None = None
    exit_at: float | None = None
    kill_at: float | None = None
    resume_at: float | None = None
    restarts: int = 0


class Kubelets:
    """The kubelets of all simulated nodes."""

    def __init__(self, context: Context, settings: KubeletSettings | None = None) -> None:
        self._context = context
        self._settings = settings or KubeletSettings()
        self._kubelets: dict[str, _Kubelet] = {}
        self._plans: dict[str, _Plan] = {}
        self._numbers = 0
        self._started = 0

    def start(self) -> None:
        """Subscribe to nodes and pods."""
        api = self._context.api
        api.subscribe("nodes", self._node_changed)
        api.subscribe("pods", self._pod_changed)
        for node in api.list("nodes"):
            self._node_changed("ADDED", node, None)

    def reconcile_node(self, name: str) -> None:
        """Register a node, or mark it as lost if its kubelet has stopped."""
        node = self._context.find("nodes", name)
        if node is None or name not in self._kubelets:
            return
        kubelet, now = self._kubelets[name], self._context.now
        status = lost(node, now) if kubelet.silent else registered(node, kubelet.number, now)
        self._context.write_status("nodes", node, status)
        if self._settings.heartbeats and not kubelet.silent:
            self._context.queue.add(self.renew_lease, name)

    def renew_lease(self, name: str) -> None:
        """Renew a node's Lease, and queue the next renewal."""
        node, kubelet = self._context.find("nodes", name), self._kubelets.get(name)
        if node is None or kubelet is None or kubelet.silent:
            return
        renewed = {"renewTime": to_microtime(self._context.now)}
        if self._context.find(LEASES, f"{LEASE_NAMESPACE}/{name}"):
            self._context.api.patch(LEASES, LEASE_NAMESPACE, name, {"spec": renewed})
        else:
            reference = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
            spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_S, **renewed}
            metadata = {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [reference]}
            self._context.api.create(
                LEASES,
                {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec},
            )
        self._context.queue.add(self.renew_lease, name, RENEW_S)

    def reconcile_pod(self, key: str) -> None:
        """Perform the next step of a pod's life if it is due, and queue the one after it.

        It asks no webhooks: a step that has begun is not repeated.
        """
        with self._context.api.trying(None):
            self._step(key)

    def _step(self, key: str) -> None:
        pod = self._context.find("pods", key)
        kubelet = self._kubelets.get(pod["spec"].get("nodeName", "")) if pod else None
        if pod is None or kubelet is None or kubelet.silent:
            return
        uid, now = pod["metadata"]["uid"], self._context.now
        plan = self._plans.get(uid)
        if plan is None:
            if not is_finished(pod) and not self._admit(pod, kubelet):
                return
            plan = self._plans[uid] = self._plan(pod)
        if pods.is_disputed(pod):
            pod = self._context.write_status("pods", pod, pods.upheld(pod, now))
        if is_terminating(pod):
            self._terminate(pod, kubelet, plan, now)
        elif not is_finished(pod):
            self._live(pod, kubelet, plan, now)
        elif uid in kubelet.admitted:
            kubelet.free(uid)
        due = [at for at in (plan.start_at, plan.ready_at, plan.exit_at, plan.kill_at, plan.resume_at) if at]
        later = [at for at in due if at > now]
        if later:
            self._context.queue.add(self.reconcile_pod, key, min(later) - now)

    def _node_changed(self, kind: EventType, node: Obj, old: Obj | None) -> None:
        """Start, change or stop a kubelet."""
        name, text = node["metadata"]["name"], kubelet_of(node)
        if kind == "DELETED" or not text:
            self._kubelets.pop(name, None)
            return
        kubelet = self._kubelets.get(name)
        if kubelet is None:
            kubelet = self._kubelets[name] = _Kubelet(number=self._numbers)
            self._numbers += 1
            woken = True
        else:
            woken = kubelet.silent and text == SIMULATED
        kubelet.silent = text == STOPPED
        status = node.get("status") or {}
        if (
            old is None
            or not kubelet.allocatable
            or (old.get("status") or {}).get("allocatable") != status.get("allocatable")
        ):
            kubelet.allocatable = amounts(status.get("allocatable") or status.get("capacity"))
        if woken or (kubelet.silent and not has_condition(node, "Ready", "Unknown")):
            self._context.queue.add(self.reconcile_node, name)
        if woken:
            for pod in self._context.pods_on(name):
                self._context.queue.add(self.reconcile_pod, key_of(pod))

    def _pod_changed(self, kind: EventType, pod: Obj, old: Obj | None) -> None:
        """Queue a pod if it was bound, deleted, removed, finished by others, or has stale conditions."""
        kubelet = self._kubelets.get(pod["spec"].get("nodeName", ""))
        if kubelet is None:
            return
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            kubelet.free(uid)
            self._plans.pop(uid, None)
        elif (
            uid not in self._plans
            or (is_terminating(pod) and not (old and is_terminating(old)))
            or pods.has_stale_readiness(pod)
            or pods.is_disputed(pod)
        ):
            self._context.queue.add(self.reconcile_pod, key_of(pod))
        elif is_finished(pod):
            kubelet.free(uid)

    def _admit(self, pod: Obj, kubelet: _Kubelet) -> bool:
        """Allocate a pod's resources, or reject it; a running pod was admitted before."""
        wanted = resources_of_node(pod, pod_requests(pod), kubelet.allocatable)
        lacking = kubelet.lacks(wanted) if phase_of(pod) == "Pending" else None
        node = self._context.find("nodes", pod["spec"]["nodeName"])
        reason = message = ""
        if lacking is not None:
            # The kubelet counts cores in thousandths and everything else in whole units.
            unit = 1 if lacking == "cpu" else 1000
            requested, used, capacity = (
                source.get(lacking, 0) // unit for source in (wanted, kubelet.used, kubelet.allocatable)
            )
            reason = f"OutOf{lacking}"
            message = (
                f"Node didn't have enough resource: {lacking}, "
                f"requested: {requested}, used: {used}, capacity: {capacity}"
            )
        elif node is not None and phase_of(pod) == "Pending" and not node_fits(pod["spec"], node):
            reason = "NodeAffinity"
            message = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
        if not reason:
            kubelet.take(pod["metadata"]["uid"], wanted)
            return True
        now = self._context.now
        self._plans[pod["metadata"]["uid"]] = _Plan(now)
        self._context.write_status("pods", pod, pods.refused(pod, reason, message, now))
        self._context.events.record(COMPONENT, pod, reason, message, "Warning")
        return False

    def _plan(self, pod: Obj) -> _Plan:
        """The plan for a pod that was just admitted."""
        delay_s = _seconds(pod, "start-after")
        if delay_s is None:
            first, last = self._settings.start_s
            share = zlib.crc32(pod["metadata"]["uid"].encode()) / 2**32
            delay_s = first + (last - first) * share
        return _Plan(self._context.now + delay_s)

    def _live(self, pod: Obj, kubelet: _Kubelet, plan: _Plan, now: float) -> None:
        """Start a pod, make it ready, end its containers."""
        if phase_of(pod) == "Pending":
            if plan.start_at > now:
                return
            if fault := claims_fault(self._context, pod):
                self._context.events.record(COMPONENT, pod, "FailedPrepareDynamicResources", fault, "Warning")
                plan.start_at = now + self._settings.claims_again_s
                return
            if error := _annotation(pod, "start-error"):
                self._context.write_status("pods", pod, pods.waiting(pod, error, now))
                return
            self._start(pod, kubelet, plan, now)
        elif plan.resume_at is not None and plan.resume_at <= now:
            plan.resume_at = None
            self._start(pod, kubelet, plan, now)
        elif plan.exit_at is not None and plan.exit_at <= now:
            plan.exit_at = plan.ready_at = None
            self._exit(pod, kubelet, plan, now)
        elif plan.ready_at is not None and plan.ready_at <= now:
            plan.ready_at = None
            self._context.write_status("pods", pod, pods.with_readiness(pod, now, ready=True))
        elif pods.has_stale_readiness(pod):
            self._context.write_status("pods", pod, pods.with_readiness(pod, now, ready=True))

    def _start(self, pod: Obj, kubelet: _Kubelet, plan: _Plan, now: float) -> None:
        """Write that a pod runs, and plan the next steps."""
        never = _annotation(pod, "ready-after") == "never"
        ready_s = 0.0 if never else _seconds(pod, "ready-after") or 0.0
        exit_s = _seconds(pod, "exit-after")
        plan.ready_at = now + ready_s if ready_s else None
        plan.exit_at = None if exit_s is None else now + max(exit_s, 0.001)
        address = (pod.get("status") or {}).get("podIP")
        if not address:
            address = pod_address(self._started)
            self._started += 1
        status = pods.running(pod, address_of(kubelet.number), address, now, ready=not never and not ready_s)
        self._context.write_status("pods", pod, status)

    def _exit(self, pod: Obj, kubelet: _Kubelet, plan: _Plan, now: float) -> None:
        """End a pod's containers; the restart policy decides whether they start again."""
        code = int(_seconds(pod, "exit-code") or 0)
        policy = pod["spec"].get("restartPolicy", "Always")
        if policy == "Always" or (policy == "OnFailure" and code):
            delay_s = min(self._settings.first_restart_s * 2**plan.restarts, self._settings.last_restart_s)
            plan.restarts = min(plan.restarts + 1, 16)
            plan.resume_at = now + delay_s
            self._context.write_status("pods", pod, pods.restarting(pod, code, now))
            return
        kubelet.free(pod["metadata"]["uid"])
        self._context.write_status("pods", pod, pods.ended(pod, code, now))

    def _terminate(self, pod: Obj, kubelet: _Kubelet, plan: _Plan, now: float) -> None:
        """Remove a deleted pod after its grace period; with finalizers, write its final status first."""
        metadata = pod["metadata"]
        if plan.kill_at is None:
            grace_s = float(metadata.get("deletionGracePeriodSeconds") or 0)
            plan.start_at, plan.ready_at, plan.exit_at, plan.resume_at = now, None, None, None
            plan.kill_at = now + min(grace_s, self._settings.longest_grace_s)
        if plan.kill_at > now:
            return
        if metadata.get("finalizers") and not is_finished(pod):
            pod = self._context.write_status("pods", pod, pods.ended(pod, pods.KILLED_EXIT, now))
        kubelet.free(metadata["uid"])
        try:
            self._context.api.delete(
                "pods", metadata["namespace"], metadata["name"], grace_seconds=0, uid=metadata["uid"]
            )
        except StatusError as error:
            if error.code not in (404, 409):
                raise


def _annotation(pod: Obj, name: str) -> str:
    text: str = (pod["metadata"].get("annotations") or {}).get(PREFIX + name, "")
    return text


def _seconds(pod: Obj, name: str) -> float | None:
    """A number in an annotation; other values count as absent."""
    try:
        return float(_annotation(pod, name))
    except ValueError:
        return None
