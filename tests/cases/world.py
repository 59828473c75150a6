"""Plays an API server and its controllers around the operator's own parts, for one field case.

Policies, the scheduling loop, the queue and the rebalancers are the operator's; what lies beyond their ports
is played here: objects are kept as documents, and the operator sees each change as a watch shows it. A bound
pod runs immediately, an eviction is refused where a PodDisruptionBudget allows none, and a controller makes
a pending pod named ``<pod>-new`` for one that leaves.
"""

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from msgspec import structs

from plimsoll.access.rights import Access
from plimsoll.app.scheduling_wing import GangParts
from plimsoll.cluster.cache import Cache
from plimsoll.cluster.pod_groups import Groups
from plimsoll.cluster.reservations import ReservationBook
from plimsoll.cluster.watch_events import (
    NodeAdded,
    NodeDeleted,
    NodeUpdated,
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
    WatchEvent,
)
from plimsoll.cluster.watched_resources import OPTIONAL, WATCHED
from plimsoll.engine.profile import Enabled
from plimsoll.framework import PodInfo, Registry
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.leadership.fence import Fence
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.composite_pod_group import CompositePodGroup
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_group import PodGroup
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.model.selectors import compile_selector
from plimsoll.model.taints import CONSOLIDATING
from plimsoll.planning.forecasts import Forecasts
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.policies.profiles import PluginFailures, ProfileSchedulers
from plimsoll.policies.rebalancing import Registries
from plimsoll.policy_controller.controller import PolicyController
from plimsoll.policy_controller.status import PolicyStatuses
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.records.store import EvictionRecordStore
from plimsoll.rebalancing.surges.rollouts import RolloutSurges
from plimsoll.rebalancing.wing import RebalancingPorts, RebalancingWing, Runtime
from plimsoll.scheduling.extenders.client import ExtenderClient
from plimsoll.strategies import EVICTORS
from plimsoll.strategies import IN_TREE as STRATEGIES
from plimsoll.testing.fakes import (
    DONE,
    FakeAccessReviewer,
    FakeClaims,
    FakeClock,
    FakeCosts,
    FakeExtenders,
    FakeMeter,
    FakeNamespacedStatuses,
    FakeNodeCloser,
    FakePods,
    FakePolicyStatuses,
    FakeRandomness,
    FakeRecorder,
    FakeRecords,
    FakeRollouts,
    InlineComputer,
    RememberingObserver,
    settled,
)
from plimsoll.timing.signal import Signal
from plimsoll.timing.timer import Timer
from plimsoll.usage.load_feed import LoadFeed
from roadstead.kinds.podspec.placement import merge_label_keys
from scheduling.wing_scene import WingScene

KINDS = {each.kind.__name__: each.kind for each in (*WATCHED, *OPTIONAL)}
NOT_NAMESPACED = {"Node", "Namespace", "PriorityClass", "PersistentVolume", "StorageClass", "CSINode",
                  "CSIDriver", "VolumeAttachment", "DeviceClass", "ResourceSlice"}  # fmt: skip
EVENTS = {
    Pod: (PodAdded, PodUpdated, PodDeleted),
    Node: (NodeAdded, NodeUpdated, NodeDeleted),
}
OTHER_EVENTS = (ObjectAdded, ObjectUpdated, ObjectDeleted)

#: Virtual seconds that a run may take.
LONGEST_RUN_S = 3600

Document = dict[str, Any]


class FakeGroupStatuses:
    """Takes the status of PodGroups and keeps none."""

    async def write_status(self, _namespace: str, _name: str, _status: Mapping[str, Any]) -> WriteResult:
        return DONE

    async def write_condition(
        self, _version: str, _group: PodGroup | CompositePodGroup, _condition: Mapping[str, Any]
    ) -> WriteResult:
        return DONE


class World:
    """A cluster with the operator in it.

    Args:
        now: The time, RFC 3339.
        extenders: What HTTP extenders answer, by verb.
        admission: The requests that a webhook gives to every container of a new pod.
    """

    def __init__(
        self,
        now: str,
        extenders: Mapping[str, Any] | None = None,
        admission: Mapping[str, str] | None = None,
    ) -> None:
        self._admission = dict(admission or {})
        self._clock = FakeClock(0.0, ahead_s=datetime.fromisoformat(now).timestamp())
        self._observer = RememberingObserver()
        self._documents: dict[tuple[str, str], Document] = {}
        self._happened: dict[str, Any] = {}
        self._records = FakeRecords()
        self._statuses = FakePolicyStatuses()
        self._born = 0
        self._evicted: set[str] = set()
        self._claims = FakeClaims()
        self._claims.watch = self._claim_changed
        cache, groups = Cache(), Groups()
        self._timer = Timer(self._clock, self._observer)
        book = ReservationBook(cache, self._timer)
        registry, recorder = Registry(IN_TREE), FakeRecorder()
        defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
        access = Access(FakeAccessReviewer(), self._clock, self._observer)
        keeper = EvictionRecordStore(self._records, self._clock, self._observer)
        fence = Fence(self._clock)
        fence.open(float("inf"))
        port = FakeExtenders()
        port.answers = dict(extenders or {})
        conditions = Signal()
        extending = ExtenderClient(
            port,
            FakePods(),
            fence=fence,
            clock=self._clock,
            observer=self._observer,
            conditions=conditions,
        )
        self._cache = cache
        self._rebalancing = RebalancingWing(
            book,
            groups,
            keeper,
            Registries(
                StrategyRegistry(STRATEGIES),
                EvictorRegistry(EVICTORS),
            ),
            access,
            RebalancingPorts(
                self,
                self,
                FakeNodeCloser(),
                FakeCosts(),
                recorder,
                self._statuses,
                FakePolicyStatuses(),
                FakeNamespacedStatuses(),
                LoadFeed(FakeMeter(), cache.cluster, self._clock),
                FakeMeter(),
                RolloutSurges(FakeRollouts(), cache.cluster.objects),
            ),
            Runtime(self._timer, self._clock, InlineComputer(), self._observer, conditions),
        )
        self._wing = WingScene(
            clock=self._clock,
            observer=self._observer,
            book=book,
            ports={
                "binder": self,
                "volumes": self,
                "preemptor": self,
                "statuses": self,
                "recorder": recorder,
                "claims": self._claims,
            },
            access=access,
            evictor=self._rebalancing.victims,
            gangs=GangParts(groups, FakeGroupStatuses(), self._timer),
            extending=extending,
        ).wing
        self._queue = self._wing.queue
        self._ingestion = self._wing.ingestion(self._rebalancing.subscribers, self._observer)

        def serve(schedulers: Mapping[str, Any], forecasts: Forecasts) -> None:
            self._rebalancing.serve({name: each.profile for name, each in schedulers.items()}, forecasts)
            self._wing.serve(schedulers)

        self._profiles = ProfileSchedulers(
            registry=registry,
            defaults=defaults,
            cluster=cache.cluster,
            nominator=book.nominator,
            randomness=FakeRandomness(),
            failures=PluginFailures(conditions),
            extending=extending,
            observer=self._observer,
        )
        self._policies = PolicyController(
            profiles=self._profiles,
            rebalancing=self._rebalancing.rebalancers,
            statuses=PolicyStatuses(
                self._statuses, recorder, access, self._clock, self._observer, [self._rebalancing.rebalancers]
            ),
            observer=self._observer,
            access=access,
            serve=serve,
            conditions=conditions,
        )
        self._access = access
        self._wing.serve_devices(is_served=True)

    # -- what a case does ----------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The operator leads and works."""
        await self._access.begin()
        work = [asyncio.ensure_future(each.run()) for each in (self._wing, self._rebalancing, self._timer)]
        await settled()
        try:
            yield
        finally:
            crashed = [task for task in work if task.done()]
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            assert not crashed, crashed

    def apply(self, *documents: Document) -> None:
        """Create or replace objects, policies among them, in one batch."""
        events = [self._set(each) for each in documents if each["kind"] != "SchedulingPolicy"]
        self._show([each for each in events if each is not None])

    async def set_policy(self, document: Document) -> None:
        """Create or change a policy; it must be accepted."""
        rebalancing = document["spec"].get("rebalancing")
        if rebalancing is not None:
            rebalancing.setdefault("schedule", {"cron": "0 0 1 1 *"})  # a case says when it runs
        await self._policies.set(document)
        name = document["metadata"]["name"]
        problems = [
            each["message"]
            for each in self._statuses.statuses[name]["conditions"]
            if each["type"] in ("Accepted", "Ready") and each["status"] != "True"
        ]
        if problems:
            self._happened.setdefault("refused policies", {})[name] = problems[0]

    def delete(self, kind: str, key: str) -> None:
        """Delete an object by ``namespace/name``, or name; one with finalizers is terminating until then."""
        document = self._documents[kind, key]
        if document["metadata"].get("finalizers"):
            self._change(kind, key, deletionTimestamp=_written(self._clock.now()))
            return
        self._documents.pop((kind, key))
        if kind == "ResourceClaim":
            self._claims.remove(key)
            return
        old: Any = convert(KINDS[kind], document)
        self._show([EVENTS.get(KINDS[kind], OTHER_EVENTS)[2](old)])  # type: ignore[call-overload] # the library is untyped
        if kind == "Pod":
            self._release_claims(document["metadata"]["uid"])

    def annotate(self, given: Mapping[str, Mapping[str, str | None]]) -> None:
        """Set annotations of objects by ``Kind/namespace/name``; None removes one."""
        for named, annotations in given.items():
            kind, _, key = named.partition("/")
            present = {**self._documents[kind, key]["metadata"].get("annotations", {}), **annotations}
            left = {name: value for name, value in present.items() if value is not None}
            self._change(kind, key, annotations=left)

    def unfinalize(self, kind: str, key: str) -> None:
        """Remove all finalizers of an object; it is gone if it was deleted before."""
        is_terminating = "deletionTimestamp" in self._documents[kind, key]["metadata"]
        self._change(kind, key, finalizers=[])
        if is_terminating:
            self.delete(kind, key)

    def evaluate(self, pod: Document, scores: Collection[str] = ()) -> None:
        """Note which nodes the pod's profile refuses, with plugin and reason, and points of these plugins."""
        info = self._info(pod)
        scheduler = self._profiles.find(info.pod.spec.scheduler_name)
        assert scheduler is not None, f"no policy serves {info.pod.spec.scheduler_name}"
        found = scheduler.evaluate(info)
        if not found.pre_filter.is_success:
            self._happened["rejected"] = _sentence(found.pre_filter)
        else:
            self._happened["infeasible"] = {
                node: _sentence(status) for node, status in sorted(found.statuses.items())
            }
            self._happened["feasible"] = sorted(found.feasible)
        if scores and found.scores is not None:
            points = dict(zip(found.scores.plugins, found.scores.normalized, strict=True))
            self._happened["scores"] = {
                plugin: {node: int(points[plugin][position]) for position, node in enumerate(found.feasible)}
                for plugin in scores
            }

    async def rebalance(self, policy: str) -> None:
        """Run a policy once; time passes while it waits for pods that leave one after another."""
        running = asyncio.ensure_future(self._rebalancing.runs.rebalance(policy))
        await settled()
        for _ in range(LONGEST_RUN_S):
            if running.done():
                break
            await self._clock.advance(1)
        assert running.done(), f"the run of policy {policy} does not end"
        result = running.result()
        assert result == "succeeded", result
        await self.wait(60)

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        await self._clock.advance(seconds)

    def observed(self) -> dict[str, Any]:
        """What happened since the last call, and which pods wait."""
        attempts = {each.pod.key: each.attempts for each in self._queue if each.attempts > 1}
        waiting = {queue: pods for queue, pods in self._queue.depths().items() if pods}
        happened = {**self._happened, "waiting": waiting, "attempts": attempts}
        self._happened = {}
        return {name: said for name, said in happened.items() if said or name == "feasible"}

    def evictions(self, *, counted: bool) -> None:
        """Note the pods that were evicted, with strategy and nodes, or their number by node only."""
        specs = [each["spec"] for each in self._records.documents.values()]
        specs = [each for each in specs if each["pod"]["uid"] in self._evicted]
        self._evicted.clear()
        if counted:
            self._happened["evicted"] = dict(sorted(Counter(each["fromNode"] for each in specs).items()))
        else:
            self._happened["evicted"] = {
                f"{each['pod']['namespace']}/{each['pod']['name']}": _move(each)
                for each in sorted(specs, key=lambda one: (one["pod"]["namespace"], one["pod"]["name"]))
            }

    # -- ports ---------------------------------------------------------------------------------------

    async def bind_together(self, bindings: Sequence[tuple[Pod, str]]) -> Sequence[WriteResult | None]:
        """One after the other."""
        return [await self.bind(pod, node) for pod, node in bindings]

    async def bind(self, pod: Pod, node: str) -> WriteResult:
        """The pod is on its node and runs."""
        self._note("bound", pod.key, node)
        document = copy.deepcopy(self._documents["Pod", pod.key])
        document["spec"]["nodeName"] = node
        document["status"] = _RUNNING
        self.apply(document)
        return DONE

    async def node_of(self, pod: Pod) -> tuple[WriteResult, str]:
        """The truth."""
        return DONE, self._documents["Pod", pod.key]["spec"].get("nodeName", "")

    async def select_node(self, claim: Any, node: str) -> WriteResult:
        """A provisioner makes a volume for the claim."""
        name = f"made-for-{claim.metadata.name}"
        document = self._documents[
            "PersistentVolumeClaim", f"{claim.metadata.namespace}/{claim.metadata.name}"
        ]
        self.apply(
            {
                "kind": "PersistentVolume",
                "metadata": {"name": name},
                "spec": {
                    "storageClassName": document["spec"]["storageClassName"],
                    "accessModes": document["spec"]["accessModes"],
                    "capacity": document["spec"]["resources"]["requests"],
                },
            }
        )
        self._note("provisioned", claim.metadata.name, node)
        return self._bind_claim(name, document)

    async def reserve(self, volume: Any, claim: Any) -> WriteResult:
        """The volume controller binds the claim to it."""
        self._note("claimed", claim.metadata.name, volume.metadata.name)
        key = f"{claim.metadata.namespace}/{claim.metadata.name}"
        return self._bind_claim(volume.metadata.name, self._documents["PersistentVolumeClaim", key])

    async def preempt(self, victim: Pod, scheduler: str) -> WriteResult:
        """The victim is gone; or it was, as another pod has preempted it."""
        if ("Pod", victim.key) not in self._documents:
            return WriteResult(WriteOutcome.GONE)
        self._happened.setdefault("preempted", []).append(victim.key)
        self._happened["preempted"].sort()
        why = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        changed = copy.deepcopy(self._documents["Pod", victim.key])
        changed["status"]["conditions"] = [*changed["status"].get("conditions", ()), why]
        self.apply(changed)
        self._leave(victim)
        return DONE

    async def clear_nomination(self, pod: Pod) -> WriteResult:
        """Nothing but the note."""
        self._note("nominated", pod.key, "")
        return DONE

    async def write_condition(self, pod: Pod, condition: Any) -> WriteResult:
        """Keep why the pod waits, and where it is nominated."""
        words = {"Unschedulable": "unschedulable", "NotReadyForScheduling": "not ready"}
        self._note(words.get(condition.reason, "failed"), pod.key, condition.message)
        if condition.nominated_node:
            self._note("nominated", pod.key, condition.nominated_node)
        return DONE

    async def nominate(self, pod: Pod, node: str) -> WriteResult:
        """A pod that waits on Permit says where; nothing is kept of it."""
        return DONE

    async def standing(self, pod: Pod) -> WriteResult:
        """The watch is never behind."""
        return DONE

    async def evict(self, pod: Pod) -> WriteResult:
        """The pod leaves, unless a budget has nothing left, as the Eviction API decides."""
        budgets = [] if pod.is_terminal or pod.status.phase == "Pending" else self._budgets(pod)
        if len(budgets) > 1:
            return WriteResult(WriteOutcome.UNKNOWN, "This pod has more than one PodDisruptionBudget")
        for each in budgets:
            status, policy = each["status"], each["spec"].get("unhealthyPodEvictionPolicy")
            is_met = status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0
            if not pod.is_ready and (is_met or policy == "AlwaysAllow"):
                continue
            is_stale = status.get("observedGeneration", 0) < each["metadata"].get("generation", 0)
            if is_stale or status["disruptionsAllowed"] < 1:
                self._note("blocked", pod.key, each["metadata"]["name"])
                return WriteResult(WriteOutcome.BLOCKED, "it would violate the pod's disruption budget",
                              budget=f"{pod.namespace}/{each['metadata']['name']}")  # fmt: skip
            changed = copy.deepcopy(each)
            changed["status"]["disruptionsAllowed"] -= 1
            self.apply(changed)
        self._evicted.add(pod.uid)
        self._leave(pod)
        return DONE

    async def close(self, node: str) -> WriteResult:
        """The node gets our taint."""
        taint = {"key": CONSOLIDATING, "effect": "NoSchedule", "timeAdded": _written(self._clock.now())}
        return self._taint(node, [taint])

    async def avoid(self, node: str) -> WriteResult:
        """The node gets our taint, by which no pod is refused."""
        return self._taint(node, [{"key": CONSOLIDATING, "effect": "PreferNoSchedule"}])

    async def reopen(self, node: str) -> WriteResult:
        """The node loses it."""
        return self._taint(node, [])

    # ------------------------------------------------------------------------------------------------

    def _taint(self, node: str, ours: list[Document]) -> WriteResult:
        changed = copy.deepcopy(self._documents["Node", node])
        spec = changed.setdefault("spec", {})
        spec["taints"] = [each for each in spec.get("taints", ()) if each["key"] != CONSOLIDATING] + ours
        self.apply(changed)
        return DONE

    def _budgets(self, pod: Pod) -> list[Document]:
        return [
            each
            for (kind, _), each in self._documents.items()
            if kind == "PodDisruptionBudget"
            and each["metadata"]["namespace"] == pod.namespace
            and compile_selector(convert(KINDS[kind], each).spec.selector).matches(pod.metadata.labels)
        ]

    def _note(self, what: str, key: str, said: str) -> None:
        self._happened.setdefault(what, {})[key] = said

    def _leave(self, pod: Pod) -> None:
        """The pod is gone, and its controller makes another one."""
        document = self._documents["Pod", pod.key]
        self.delete("Pod", pod.key)
        if any(each.get("controller") for each in document["metadata"].get("ownerReferences", ())):
            fresh = copy.deepcopy(document)
            fresh["metadata"] |= {"name": f"{pod.name}-new", "uid": f"{pod.uid}-new"}
            fresh["metadata"]["creationTimestamp"] = _written(self._clock.now())
            fresh["spec"].pop("nodeName", None)
            for each in fresh["spec"]["containers"] if self._admission else ():
                each.setdefault("resources", {}).setdefault("requests", {}).update(self._admission)
            fresh["status"] = {"phase": "Pending"}
            self.apply(fresh)

    def _bind_claim(self, volume: str, claim: Document) -> WriteResult:
        bound, taken = copy.deepcopy(claim), copy.deepcopy(self._documents["PersistentVolume", volume])
        bound["spec"]["volumeName"] = volume
        bound["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        bound["status"] = {"phase": "Bound"}
        taken["spec"]["claimRef"] = {name: claim["metadata"][name] for name in ("namespace", "name", "uid")}
        taken["status"] = {"phase": "Bound"}
        self.apply(taken, bound)
        return DONE

    def _set(self, document: Document) -> Any:
        """Keep a document as a server would; the event of its change."""
        kind = document["kind"]
        meta = document["metadata"]
        if kind not in NOT_NAMESPACED:
            meta.setdefault("namespace", "default")
        meta.setdefault("uid", f"uid-{kind.lower()}-{meta.get('namespace', '')}-{meta['name']}")
        if "creationTimestamp" not in meta:
            self._born += 1
            meta["creationTimestamp"] = _written(self._clock.now() - 86400 + self._born)
        if kind == "Node":
            meta.setdefault("labels", {}).setdefault("kubernetes.io/hostname", meta["name"])
            status = document.setdefault("status", {})
            status.setdefault("conditions", [{"type": "Ready", "status": "True"}])
        if kind == "Pod":
            if ("Pod", f"{meta['namespace']}/{meta['name']}") not in self._documents:
                document["spec"] = copy.deepcopy(document["spec"])  # files share parts
                merge_label_keys(document["spec"], meta.get("labels") or {})
            document["spec"].setdefault("containers", [{"name": "main", "image": "app"}])
            has_node = document["spec"].get("nodeName")
            document.setdefault("status", _RUNNING if has_node else {"phase": "Pending"})
        key = f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]
        if kind == "ResourceClaim":
            claim: Any = convert(ResourceClaim, document)
            known = self._claims.claims.get(key)
            if known is not None and "status" not in document:
                claim = structs.replace(claim, status=known.status)
            self._documents[kind, key] = document
            self._claims.put(claim)
            return None
        added, updated, _ = EVENTS.get(KINDS[kind], OTHER_EVENTS)  # type: ignore[call-overload] # the library is untyped
        old = self._documents.get((kind, key))
        self._documents[kind, key] = document
        new: Any = convert(KINDS[kind], document)
        return added(new) if old is None else updated(convert(KINDS[kind], old), new)

    def _show(self, events: list[Any]) -> None:
        self._ingestion.apply(events)
        assert not self._observer.skipped, self._observer.skipped
        assert not self._observer.failures, self._observer.failures

    def _change(self, kind: str, key: str, **metadata: Any) -> None:
        changed = copy.deepcopy(self._documents[kind, key])
        changed["metadata"] |= metadata
        self.apply(changed)

    def _claim_changed(self, event: WatchEvent) -> None:
        """The watch shows a claim; note its devices when they change."""
        self._show([event])
        if not isinstance(event, ObjectUpdated):
            return
        old: Any = event.old
        new: Any = event.new
        before, after = old.status.allocation, new.status.allocation
        if after != before:
            results = () if after is None else after.devices.results
            self._note("allocated", new.key, ", ".join(map(_device, results)) or "nothing")

    def _release_claims(self, uid: str) -> None:
        """The controller of claims: a pod that is gone has no claim, and a claim without pods no device."""
        for claim in list(self._claims.claims.values()):
            left = tuple(each for each in claim.status.reserved_for if each.uid != uid)
            if left != claim.status.reserved_for:
                allocation = claim.status.allocation if left else None
                status = structs.replace(claim.status, reserved_for=left, allocation=allocation)
                self._claims.put(structs.replace(claim, status=status))

    def _info(self, document: Document) -> PodInfo:
        document["metadata"] = {"namespace": "default", **document["metadata"], "uid": "uid-evaluated"}
        document["spec"] = copy.deepcopy(document.get("spec", {}))
        merge_label_keys(document["spec"], document["metadata"].get("labels") or {})
        return self._cache.info(convert(Pod, document))


_RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def _move(spec: Mapping[str, Any]) -> str:
    return f"{spec['strategy']}: {spec['fromNode']} -> {spec.get('targetNode') or 'anywhere'}"


def _device(result: Any) -> str:
    amounts = "".join(f" {name}={amount}" for name, amount in sorted(result.consumed_capacity.items()))
    return f"{result.pool}/{result.device}{amounts}"


def _sentence(status: Any) -> str:
    return f"{status.plugin}: {', '.join(status.reasons)}"


def _written(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
