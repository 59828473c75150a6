"""Eviction: the record of one move, written before the eviction is attempted and carried to its end.

Not to be confused with the eviction that is posted to ``pods/eviction`` (policy/v1), nor with the alpha
``evictions.lifecycle.k8s.io`` of Kubernetes 1.37: scripts say ``evictions.plimsoll.dev`` or ``plev``.
"""

from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from plimsoll.api.schema.fields import NamespaceName, ObjectName, PluginName, Timestamp, Uid
from plimsoll.api.schema.resource import CustomResource, Definition, PrinterColumn, Resource
from plimsoll.api.schema.rules import TransitionRule, UniqueItems
from plimsoll.api.v1alpha1.eviction_phases import FINISHED, Phase, may_follow
from plimsoll.api.v1alpha1.real_load import MovedLoad, UsedLoad
from plimsoll.api.v1alpha1.rebalancing import Mode, PlannerName


class Purpose(StrEnum):
    """What a move is for."""

    MOVE = "Move"
    RESTART = "Restart"


class PodReference(Resource):
    """The pod that is moved; the uid tells it from a later one of the same name."""

    namespace: NamespaceName = Field(description="Namespace of the pod.")
    name: ObjectName = Field(description="Name of the pod.")
    uid: Uid = Field(description="Uid of the pod.")


class EvictedOwner(Resource):
    """The pod's controller, which makes the replacement."""

    api_version: str = Field(min_length=1, max_length=317, description="API version of the owner.")
    kind: str = Field(min_length=1, max_length=63, description="Kind of the owner.")
    name: ObjectName = Field(description="Name of the owner.")
    uid: Uid = Field(description="Uid of the owner.")


class GangMember(Resource):
    """A further member of the PodGroup that moves make room for."""

    pod: PodReference = Field(description="Pod of the group that finds a place.")
    node: ObjectName = Field(description="Node that the pod fits on after the moves.")


class BundleReference(Resource):
    """The moves that this one stands and falls with."""

    name: ObjectName = Field(
        description="What the records of the bundle have in common, also as the label plimsoll.dev/bundle."
    )
    position: int = Field(
        ge=1, description="Place of this move among those of the bundle, in the order they are made."
    )
    moves: int = Field(ge=1, description="How many moves the bundle has.")
    group: Annotated[str, Field(max_length=512)] | None = Field(
        default=None, description="The group of pods that leaves whole by these moves; left out without one."
    )
    price_per_hour: Annotated[str, Field(pattern="^[0-9.]{1,20} [A-Z]{3}$")] | None = Field(
        default=None,
        description="Price an hour of the node that these moves empty, such as 0.192 EUR; left out if it "
        "states none, and for a node that is emptied on request.",
    )
    beneficiary: PodReference | None = Field(
        default=None,
        description="The pod, pending or with a deferred resize, that the moves make room for.",
    )
    node: ObjectName | None = Field(
        default=None, description="Where the beneficiary fits then; left out without one."
    )
    members: Annotated[tuple[GangMember, ...], Field(max_length=100)] = Field(
        default=(),
        description="Further members of the beneficiary's PodGroup, which get their nodes together with it.",
    )


class SurgeReference(Resource):
    """The rollout, or the replica more, that moves the pod instead of an eviction."""

    deployment: ObjectName = Field(description="Name of the Deployment, Rollout or CloneSet whose pod moves.")
    uid: Uid = Field(description="Uid of the Deployment, Rollout or CloneSet.")
    kind: Literal["Deployment", "Rollout", "CloneSet"] = Field(
        default="Deployment",
        json_schema_extra={"default": None},  # unknown to the release before (tests/upgrades)
        description="Kind of the object that is scaled or rolled out; Rollout is that of Argo (argoproj.io), "
        "CloneSet that of OpenKruise (apps.kruise.io). Left out for a Deployment.",
    )
    template: str | None = Field(
        default=None,
        min_length=1,
        max_length=64,
        description="Digest of its pod template without the annotation plimsoll.dev/surged: the rollout is "
        "started, and taken back, only as long as it holds. Left out without a rollout.",
    )
    before: str | None = Field(
        default=None,
        max_length=1024,
        description="The earlier value of the annotation, absent if it had none; reverting the rollout "
        "restores it.",
    )
    replicas: int | None = Field(
        default=None,
        ge=1,
        le=2**31 - 1,
        description="For one of several replicas, which moves without a rollout: their number before it is "
        "raised by one, and after it is lowered again.",
    )


class EvictionSpec(Resource):
    """What was decided and why."""

    transition_rules = (
        TransitionRule(
            cel="self == oldSelf",
            holds=lambda old, new: old == new,
            message="the spec of a record never changes; delete the record, the next run decides afresh",
        ),
    )

    pod: PodReference = Field(description="The pod that is moved.")
    owner: EvictedOwner | None = Field(
        default=None, description="The pod's controller; left out for a pod without one."
    )
    policy: ObjectName = Field(description="SchedulingPolicy that decided it.")
    strategy: PluginName = Field(description="Strategy that proposed it.")
    mode: Mode = Field(description="Mode it was decided in; a DryRun record is never carried out.")
    planner: PlannerName = Field(
        default=PlannerName.PROVEN,
        description="Planner that decided it; the target of an Upstream move is a forecast.",
    )
    reason: str = Field(min_length=1, max_length=1024, description="Why the pod is moved, in a sentence.")
    from_node: ObjectName = Field(description="Node that the pod runs on.")
    target_node: ObjectName | None = Field(
        default=None,
        description="Node that the replacement is expected on; left out when none is expected.",
    )
    directed: bool = Field(
        default=False,
        description="Whether the replacement is sent to the target, whatever its score, instead of being "
        "expected there as the scheduler's choice.",
    )
    forecast: bool = Field(
        default=False,
        description="Whether nothing vouches for the target: another scheduler places the replacement, or no "
        "planner proved the place. Such a target is not held.",
    )
    equal_targets: Annotated[tuple[ObjectName, ...], Field(max_length=16)] = Field(
        default=(),
        description="For a forecast: some of the nodes that scored as much as the target.",
    )
    proven_with: Annotated[str, Field(max_length=1024)] | None = Field(
        default=None,
        description="Requests of the replacement that differ from those of the pod, such as cpu 2 (now "
        "500m); the target is proven with them. Left out for none.",
    )
    bundle: BundleReference | None = Field(
        default=None,
        description="The moves that this one stands and falls with; left out for one that stands alone.",
    )
    gain: int | None = Field(
        default=None,
        description="Points by which the target's total score beats that of the present node; below 0 where "
        "the move mends what its strategy complains of and the score alone would not make it.",
    )
    gain_maximum: int | None = Field(
        default=None,
        description="Points that a node can score at most, to compare the gain with.",
    )
    purpose: Purpose = Field(
        default=Purpose.MOVE,
        description="Move wants the replacement on another node; Restart wants a fresh pod, on any node.",
    )
    surge: SurgeReference | None = Field(
        default=None,
        description="Says that the pod is not evicted: its Deployment is rolled out, or gets one replica "
        "more and then one less, which brings the replacement up before the pod goes. Left out for "
        "evictions.",
    )
    load: MovedLoad | None = Field(
        default=None,
        description="What the move does to the load of both nodes, and what the pod is expected to use, for a"
        " move by what nodes use; left out for others.",
    )

    @property
    def is_by_replicas(self) -> bool:
        """Whether the pod moves by one replica more, rather than by a rollout."""
        return self.surge is not None and self.surge.replicas is not None


class PhaseTransition(Resource):
    """When a phase was reached."""

    phase: Phase = Field(description="Phase that the move has entered.")
    time: Timestamp = Field(description="When the move entered the phase.")


class Replacement(Resource):
    """The pod that took the evicted one's place."""

    name: ObjectName = Field(description="Name of the replacement.")
    uid: Uid = Field(description="Uid of the replacement.")
    node: ObjectName | None = Field(
        default=None, description="Node that it landed on; left out while it has none."
    )


_FINISHED = ", ".join(f"'{phase}'" for phase in FINISHED)


class EvictionStatus(Resource):
    """Progress of the move; written by the operator alone."""

    transition_rules = (
        TransitionRule(
            cel=f"!(has(oldSelf.phase) && oldSelf.phase in [{_FINISHED}])"
            " || (has(self.phase) && self.phase == oldSelf.phase)",
            holds=lambda old, new: old.phase not in FINISHED or new.phase is old.phase,
            message="a finished record keeps its phase; a further attempt is a record of its own",
        ),
    )

    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the spec that this status is about."
    )
    phase: Phase | None = Field(default=None, description="How far the move has come.")
    reason: str | None = Field(
        default=None, max_length=253, description="Why it is in this phase, in one word for machines."
    )
    message: str | None = Field(
        default=None, max_length=4096, description="Why it is in this phase, in a sentence for people."
    )
    blocked_by: str | None = Field(
        default=None,
        max_length=253,
        description="Budget that allowed no eviction: a PodDisruptionBudget, or one of the policy's own when "
        "the reason is EvictionBudget.",
    )
    replacement: Replacement | None = Field(
        default=None, description="The pod that took the evicted one's place, and where it landed."
    )
    load: UsedLoad | None = Field(
        default=None,
        description="What the replacement was measured to use once it had started up, and the error of what"
        " was expected; left out until then, and for moves without spec.load.",
    )
    exported_time: Timestamp | None = Field(
        default=None, description="When the finished record was written to the audit log."
    )
    transitions: Annotated[tuple[PhaseTransition, ...], Field(max_length=16), UniqueItems("phase")] = Field(
        default=(), description="When each phase was reached, oldest first."
    )

    def entering(
        self,
        phase: Phase,
        now: Timestamp,
        *,
        reason: str | None = None,
        message: str | None = None,
        blocked_by: str | None = None,
        replacement: Replacement | None = None,
    ) -> Self:
        """The status after the move reached ``phase``; reason and message are those of the new phase.

        Raises:
            ValueError: the phase may not follow the present one.
        """
        if not may_follow(self.phase, phase):
            raise ValueError(f"a record that is {self.phase or 'new'} cannot become {phase}")
        arrival = () if phase is self.phase else (PhaseTransition(phase=phase, time=now),)
        return type(self)(
            observed_generation=self.observed_generation,
            phase=phase,
            reason=reason,
            message=message,
            blocked_by=blocked_by,
            replacement=replacement or self.replacement,
            load=self.load,
            transitions=(*self.transitions, *arrival),
        )


class Eviction(CustomResource):
    """The record of one move of a pod: why, from where, to where, and what came of it."""

    definition: ClassVar = Definition(
        kind="Eviction",
        plural="evictions",
        short_name="plev",
        scope="Namespaced",
        columns=(
            PrinterColumn("Pod", ".spec.pod.name", description="Pod that is moved."),
            PrinterColumn("Owner", ".spec.owner.name", description="Controller of the pod."),
            PrinterColumn("From", ".spec.fromNode", description="Node that it ran on."),
            PrinterColumn("To", ".spec.targetNode", description="Node that was proven to have a place."),
            PrinterColumn(
                "Landed", ".status.replacement.node", description="Node that the replacement is on."
            ),
            PrinterColumn("Strategy", ".spec.strategy", description="Strategy that proposed it."),
            PrinterColumn("Phase", ".status.phase", description="How far the move has come."),
            PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
            PrinterColumn("Policy", ".spec.policy", description="Policy that decided it.", priority=1),
            PrinterColumn(
                "Surge",
                ".spec.surge.deployment",
                description="Deployment whose rollout moves the pod.",
                priority=1,
            ),
            PrinterColumn("Reason", ".spec.reason", description="Why the pod is moved.", priority=1),
            PrinterColumn("Message", ".status.message", description="Why it is in this phase.", priority=1),
        ),
        selectable_fields=(
            ".spec.policy",
            ".spec.strategy",
            ".spec.mode",
            ".spec.fromNode",
            ".spec.targetNode",
            ".spec.pod.name",
            ".status.phase",
        ),
    )

    kind: Literal["Eviction"] = Field(default="Eviction", description="Kind of the object.")
    spec: EvictionSpec = Field(description="The move that was decided, and why; it never changes.")
    status: EvictionStatus | None = Field(
        default=None, description="How far the move has come; written by the operator alone."
    )
