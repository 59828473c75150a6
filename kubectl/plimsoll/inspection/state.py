"""ClusterState is a cluster as the operator sees it, read from documents; every answer is based on one.

The operator's own code judges policies, builds profiles and collects the input of a run. The operator's
memory is missing: its queue and back-off, rounds in which nodes were over-used, pods evicted since its moves
began, and smoothed usage.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct

from plimsoll.api.v1alpha1.annotations import STOP, stop_sentence
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.pod_groups import Groups, gang_needs
from plimsoll.cluster.reservations import FIRM, ReservationBook, ReservationReason
from plimsoll.cluster.watch_events import ObjectAdded, PodAdded
from plimsoll.engine.profile import Profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Pod, PodInfo
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.inspection.catalogue import Catalogue, RebalancingJudge, SchedulingJudge
from plimsoll.inspection.measured_usage import measured
from plimsoll.inspection.mirrored import MirroredObjects
from plimsoll.inspection.still_time import StillClock
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import PodIndex
from plimsoll.model.columns.pod_counts import PodCounts
from plimsoll.model.columns.queue_usage import ReclaimTimes, WaitingDemand, asks_for_room
from plimsoll.model.columns.term_counts import TermCounts
from plimsoll.model.errors import PlimsollError
from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER
from plimsoll.model.kinds.pod_info import Holder, HolderKind
from plimsoll.model.kinds.scaled_workloads import SCALED
from plimsoll.model.names import RecordKey
from plimsoll.planning import context
from plimsoll.planning.context import RATE_S, PlanningFacts, touched_nodes, under_way
from plimsoll.planning.forecasts import Forecasts
from plimsoll.planning.history import UnreadyReplacement
from plimsoll.planning.moves import HoldReason, Monotonic, PlanningContext, RebalancingConfig, standing
from plimsoll.planning.proven.plan_builder import KEPT
from plimsoll.planning.rebalancing_rules import HOUR_S
from plimsoll.planning.surges import Deployments
from plimsoll.policies.judgement import PolicyChecks, PolicyVerdict, divide
from plimsoll.policies.node_maintenance import chosen, is_over
from plimsoll.policies.scheduler_names import is_served, sentence
from plimsoll.ports.observer import Observer
from plimsoll.preflight.policy_conditions import claims_of
from plimsoll.records.history import (
    about_to_leave,
    is_victim,
    memory_of,
    sent_moves,
    sent_since,
    sent_since_by_namespace,
    unready_replacements,
)
from plimsoll.records.record import Record
from plimsoll.snapshots.content import DEPLOYMENTS, SnapshotContent
from plimsoll.timing.timer import Timer
from plimsoll.toolkit.scheduling.fair_shares import fair_queues

#: What plans read of the pods: what their forks begin with, and what plugins would count in each of them.
COUNTED: tuple[type[PodIndex], ...] = (*KEPT, PodCounts, TermCounts)


class UnknownHereError(PlimsollError):
    """The answer needs a plugin or strategy that is not installed on this machine."""


class JudgedPolicy(Struct, frozen=True):
    """A policy and its judgement.

    Attributes:
        lost: Why it serves nothing though its spec is valid, as a reason and a sentence; "" otherwise.
    """

    name: str
    document: Mapping[str, Any]
    verdict: PolicyVerdict
    lost: tuple[str, str] = ("", "")

    @property
    def policy(self) -> SchedulingPolicy | None:
        """The accepted policy; None if it is not accepted."""
        return None if self.lost[0] else self.verdict.policy

    @property
    def problem(self) -> tuple[str, str]:
        """Why it is not accepted, as a reason and a sentence; "" if it is."""
        return self.lost if self.lost[0] else (self.verdict.reason, self.verdict.sentence)

    @property
    def unknown(self) -> str:
        """Why it cannot be judged here though the operator may serve it; "" if it can.

        The operator has packages that this machine lacks, unless it says itself that the policy is invalid.
        """
        status = self.document.get("status") or {}
        is_refused = any(
            each.get("type") == "Accepted" and each.get("status") == "False"
            for each in status.get("conditions") or ()
        )
        if not self.verdict.unknown or is_refused:
            return ""
        remedy = "correct the name, install its package here, or ask the operator"
        return f"not known here: {self.verdict.sentence}; {remedy}"


class ClusterState:
    """One cluster at one moment; read-only.

    Attributes:
        content: The content from which it was read.
        catalogue: The plugins and strategies that policies can name.
        objects: Nodes, pods and other mirrored objects.
        now: The moment, in seconds since the epoch.
        policies: Every policy, keyed by name, the oldest first.
        profiles: Profiles of the policies that place pods, by scheduler name.
        working: The policies that rebalance, keyed by name.
        book: Nominated pods, and the targets of open moves.
        monotonic: The clock by which the searches of plans end.
    """

    def __init__(
        self,
        content: SnapshotContent,
        objects: MirroredObjects,
        policies: Iterable[Mapping[str, Any]],
        catalogue: Catalogue,
        monotonic: Monotonic = standing,
    ) -> None:
        self.content, self.objects, self.catalogue = content, objects, catalogue
        self.monotonic = monotonic
        self.now = content.taken
        self.policies: dict[str, JudgedPolicy] = {}
        self.profiles: dict[str, Profile] = {}
        self._moving: dict[str, Profile] = {}  #: of the operator that moves pods
        self.forecasts = Forecasts()
        self._assumed: dict[str, ProfileScheduler] = {}
        self.working: dict[str, SchedulingPolicy] = {}
        self._judge(policies)
        self.book = ReservationBook(objects.cache, Timer(StillClock(self.now), Observer()))
        self.cluster.index(ReclaimTimes).now = self.now
        self._count_demand()
        self._reserve()

    @classmethod
    def of(
        cls,
        content: SnapshotContent,
        policies: Iterable[Mapping[str, Any]] | None = None,
        catalogue: Catalogue | None = None,
        monotonic: Monotonic = standing,
    ) -> "ClusterState":
        """Read a snapshot; ``policies`` replace its own."""
        objects = MirroredObjects(content)
        documents = objects.policies if policies is None else policies
        return cls(content, objects, documents, catalogue or Catalogue(), monotonic)

    def with_policies(self, documents: Iterable[Mapping[str, Any]]) -> "ClusterState":
        """The same cluster with only these policies."""
        return ClusterState(self.content, self.objects, documents, self.catalogue, self.monotonic)

    # -- the cluster ---------------------------------------------------------------------------------

    @property
    def cluster(self) -> Cluster:
        """Nodes and placed pods; read-only."""
        return self.objects.cache.cluster

    @property
    def records(self) -> Mapping[RecordKey, Record]:
        """Eviction records by ``namespace/name``."""
        return self.objects.records

    @property
    def time(self) -> datetime:
        """The moment, with a time zone."""
        return datetime.fromtimestamp(self.now, UTC)

    @cached_property
    def schedulers(self) -> dict[str, ProfileScheduler]:
        """The schedulers of the profiles, by scheduler name; ties go to the first of the best."""
        nominator = self.book.nominator
        return {
            name: ProfileScheduler(profile, self.cluster, nominator=nominator)
            for name, profile in self.profiles.items()
        }

    def deciding(self, name: str) -> ProfileScheduler:
        """The scheduler that places the pods of a name; if no policy serves it, one by an assumed profile.

        Raises:
            UnknownHereError: A policy serves it by a plugin that is not installed here.
        """
        served = self.scheduler(name)
        if served is not None:
            return served
        if name not in self._assumed:
            profile = self.forecasts.profile_of(name, {}) or self.catalogue.default
            self._assumed[name] = ProfileScheduler(profile, self.cluster, nominator=self.book.nominator)
        return self._assumed[name]

    @cached_property
    def groups(self) -> Groups:
        """The groups of pods, with those that the policies derive from owners."""
        deriving = frozenset(name for name, each in self.profiles.items() if each.groups.derives)
        read = self.objects.groups
        if not deriving:
            return read
        found = Groups()  # other policies may judge the same objects
        found.core_version, found.composite_version = read.core_version, read.composite_version
        found.derive_for(deriving, ())
        objects = {each.key: each.object for each in read if each.object is not None}
        composites = [each.object for each in read.composites.values()]
        for known in (*read.owners, *objects.values(), *composites):
            found.observe(ObjectAdded(known))
        for pod in (*self.cluster.pods.values(), *self.objects.pending.infos()):
            found.observe(PodAdded(pod.pod))
        return found

    def scheduler(self, name: str) -> ProfileScheduler | None:
        """The scheduler of a name; None if no policy serves it.

        Raises:
            UnknownHereError: A policy serves it by a plugin that is not installed here.
        """
        self.check_known((name,))
        return self.schedulers.get(name)

    def check_known(self, names: Collection[str]) -> None:
        """Raise UnknownHereError if a policy serves one of these names by a plugin that is not known here."""
        for name, problem in self.unknown.items():
            if name in names:
                raise UnknownHereError(f'SchedulingPolicy for schedulerName "{name}" is {problem}')

    @cached_property
    def unknown(self) -> Mapping[str, str]:
        """By scheduler name, why the policy that serves it cannot be judged here."""
        found = {}
        for each in self.policies.values():
            name = ((each.document.get("spec") or {}).get("scheduling") or {}).get("schedulerName")
            if each.unknown and name is not None and name not in self.profiles:
                found[str(name)] = each.unknown
        return found

    @cached_property
    def unserved(self) -> Mapping[str, str]:
        """Why no scheduler places pending pods of a scheduler name, for names that none seems to serve."""
        names = {pod.spec.scheduler_name for pod in self.objects.pending.waiting()}
        names -= {DEFAULT_SCHEDULER, *self.profiles}
        if not names:
            return {}
        pods = (*self.cluster.pods.values(), *self.objects.pending.infos())
        names -= {each.pod.spec.scheduler_name for each in pods if is_served(each.pod)}
        claims = claims_of([each.document for each in self.policies.values()])
        return {name: sentence(name, claims) for name in sorted(names)}

    def find_pod(self, namespace: str, name: str) -> PodInfo | None:
        """The pod of this name, placed or not; None when it does not exist."""
        pods = (*self.cluster.pods.values(), *self.objects.pending.infos())
        named = (each for each in reversed(pods) if each.name == name and each.namespace == namespace)
        found = next(named, None)
        return None if found is None else self.objects.pending.find(found.uid)

    # -- policies ------------------------------------------------------------------------------------

    def _judge(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Judge policies as the operator does, and divide scheduler names among them."""
        objects = self.cluster.objects
        checks = PolicyChecks(
            SchedulingJudge(self.catalogue), RebalancingJudge(self.catalogue, objects, self.time)
        )
        verdicts = {
            str((document.get("metadata") or {}).get("name", "")): (document, checks.judge(document))
            for document in documents
        }
        accepted = [(each.policy, each.order) for _, each in verdicts.values() if each.policy is not None]
        found = divide(accepted)
        self.policies = {
            name: JudgedPolicy(name, document, verdict, found.lost.get(name, ("", "")))
            for name, (document, verdict) in verdicts.items()
        }
        own, described = (
            {name: self.catalogue.profile(spec, found.claimed[name]) for name, spec in specs.items()}
            for specs in (found.serving, found.described)
        )
        self.profiles = own | {name: described[name] for name in described if name in found.others}
        self._moving = own
        self.forecasts = Forecasts(described, self.catalogue.default)
        self.working = {policy.metadata.name: policy for policy in found.working}
        self.catalogue.tell_who_stays(found.working, own)

    @property
    def stop(self) -> str:
        """Why no policy moves pods, "" unless the stop button is pressed in a namespace of an operator."""
        namespaces = self.cluster.objects.namespaces.values()
        pressed = (each.metadata for each in namespaces if each.metadata.annotations.get(STOP) == "true")
        return next((stop_sentence(each.name, each.annotations) for each in pressed), "")

    def configured(self, name: str) -> RebalancingConfig:
        """The configuration of a working policy; while the stop button is pressed it moves nothing."""
        wanted = self.catalogue.rebalancing(
            self.working[name], self._moving, self.cluster.objects, self.time, self.forecasts
        )
        wanted = msgspec.structs.replace(wanted, leaving=self._maintained)
        return wanted.held(HoldReason.STOPPED, self.stop) if self.stop else wanted

    @cached_property
    def _maintained(self) -> frozenset[str]:
        """The nodes of NodeMaintenances that go on: no pod is moved there, as in the operator."""
        found = set[str]()
        for each in self.objects.maintenances:
            with suppress(ValueError):  # the operator empties no node of it either
                found.update(() if is_over(each) else chosen(each, self.cluster.nodes))
        return frozenset(found)

    # -- runs ----------------------------------------------------------------------------------------

    def count(self) -> None:
        """Count what plans read of the pods: forks of the cluster then begin with it."""
        self.cluster.count(COUNTED)

    def run_input(self, name: str) -> tuple[RebalancingConfig, Cluster, PlanningContext]:
        """The input of a run of a working policy that begins now (``rebalancing.runs.inputs``)."""
        spec = self.working[name].spec.rebalancing or RebalancingSpec()
        records = self.records.values()
        memory = memory_of(records, self.now)
        wanted = self.configured(name).rested(memory, name)
        moves = sent_moves(records)
        in_flight = under_way(moves)
        facts = PlanningFacts(
            now=self.now,
            unplaced=self.objects.pending.infos(),
            served=(),  # rooms are reserved in the operator's memory
            moves=moves,
            in_flight=in_flight,
            followed=frozenset(each.replacement for each in moves if each.ended is None and each.replacement),
            moving=about_to_leave(records),
            memory=memory,
            recent=sent_since(records, name, self.now - RATE_S),
            hourly=sent_since_by_namespace(records, self.now - HOUR_S),
            unready={key: each for key, each in self._unready().items() if key not in in_flight},
            gangs=gang_needs(self.groups, self.objects.cache),
            over_for={},
            others=self._others(name),
            measurements=measured(self.content.usage, spec, touched_nodes(moves, self.now), self.now),
            deployments=self._deployments() if wanted.surge else Deployments(),
            monotonic=self.monotonic,
        )
        is_upstream = wanted.planner is Planner.UPSTREAM
        self.count()
        return wanted, self.cluster.fork() if is_upstream else self.book.claimed(), context.of(facts)

    def _unready(self) -> dict[str, UnreadyReplacement]:
        """By workload key, the replacement of an earlier move that is not ready."""
        return unready_replacements(self.records.values(), self._pods_of)

    def _pods_of(self, owner: str) -> Iterator[Pod]:
        """The pods of an owner, by its uid."""
        return (each.pod for each in self._owned.get(owner, ()))

    @cached_property
    def _owned(self) -> Mapping[str, Sequence[PodInfo]]:
        """Pods, placed or not, by the uid of their owner: records of many owners are read."""
        found: defaultdict[str, list[PodInfo]] = defaultdict(list)
        for each in (*self.cluster.pods.values(), *self.objects.pending.infos()):
            owner = each.pod.metadata.owner
            if owner is not None:
                found[owner.uid].append(each)
        return found

    def _others(self, name: str) -> dict[str, RebalancingConfig]:
        """The configurations of the other policies that carry out moves."""
        return {
            other: self.configured(other)
            for other, policy in self.working.items()
            if other != name
            and policy.spec.rebalancing is not None
            and policy.spec.rebalancing.mode is not Mode.DRY_RUN
        }

    def _deployments(self) -> Deployments:
        problem = self.content.missing.get(DEPLOYMENTS, "")
        return Deployments(
            self.objects.deployments,
            problem and f"Deployments are not known: {problem}",
            self.objects.autoscaled,
            {kind: f"{kind}s are read by the operator only" for kind in SCALED.keys() - {"Deployment"}},
        )

    # -- reservations --------------------------------------------------------------------------------

    def _count_demand(self) -> None:
        """Count the demand of waiting pods where a profile divides shares by it, as the operator does."""
        if self.cluster.has_index(WaitingDemand):
            return  # by another view of the same cluster
        if any(fair_queues(each.plugins) is not None for each in self.profiles.values()):
            demand = self.cluster.index(WaitingDemand)
            for pod in self.objects.pending.infos():
                if asks_for_room(pod.pod):
                    demand.set(pod, is_placed=False)

    def _reserve(self) -> None:
        """Reserve room for nominated pods, and the targets of open moves."""
        waiting = self.objects.pending.waiting()
        for pod in waiting:
            if pod.nominated_node_name and pod.spec.scheduler_name in self.profiles:
                self.book.nominate(
                    self.objects.cache.info(pod), pod.nominated_node_name, pod.spec.scheduler_name
                )
        for record in self.records.values():
            if record.phase is Phase.EVICTED and not record.is_forecast and not is_victim(record):
                self._reserve_target(record)

    def _reserve_target(self, record: Record) -> None:
        """Reserve the target of a move whose replacement has no node yet."""
        target, owner = record.spec.target_node, record.spec.owner
        if not target or owner is None:
            return
        sent = record.status.transitions[-1].time if record.status.transitions else None
        siblings = self._owned.get(owner.uid, ())
        new = [
            each
            for each in siblings
            if sent is not None
            and each.pod.metadata.creation_timestamp is not None
            and each.pod.metadata.creation_timestamp >= sent.replace(microsecond=0)
        ]
        if any(each.pod.node_name == target for each in new):
            return
        if new and not new[0].pod.node_name:
            self.book.nominate(new[0], target, record.spec.policy)
        elif siblings:
            metadata = msgspec.structs.replace(siblings[0].pod.metadata, name=record.spec.pod.name)
            like = self.objects.cache.info(msgspec.structs.replace(siblings[0].pod, metadata=metadata))
            holder = Holder(HolderKind.REPLACEMENT, record.key)
            self.book.reserve_in_stead(
                holder, like, target, ReservationReason.MOVE_TARGET, record.spec.policy, priority=FIRM
            )
