"""Scheduling of a policy: a profile with the fields of KubeSchedulerConfiguration v1 (kube-scheduler 1.36).

Which plugins exist and what their args mean is judged by the operator, not here: third parties add some.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from plimsoll.api.schema.fields import Amounts, LabelKey, PluginName, SchedulerName
from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import UniqueItems
from plimsoll.api.v1alpha1.adoption import AdoptSpec
from plimsoll.api.v1alpha1.extender import EXTENDER_RULES, ExtenderSpec

Args = Annotated[
    dict[str, JsonValue],
    Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True, "additionalProperties": False}),
]
"""Arguments whose fields their owner knows; the operator judges them and names the field that is wrong."""


class EnabledPlugin(Resource):
    """A plugin to run."""

    name: PluginName = Field(description="Name of the plugin.")
    weight: int | None = Field(
        default=None,
        ge=0,
        le=2**31 - 1,
        description="Factor of the plugin's score; left out or 0 means 1, as in kube-scheduler.",
    )


class DisabledPlugin(Resource):
    """A default plugin not to run."""

    name: Annotated[
        str, Field(pattern=r"^(\*|[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?)$", max_length=253)
    ] = Field(
        description='Name of the plugin; "*" disables all defaults of the extension point.',
        examples=["NodeResourcesFit", "*"],
    )


class PluginSetSpec(Resource):
    """Changes to the default plugins of one extension point."""

    enabled: Annotated[tuple[EnabledPlugin, ...], Field(max_length=100), UniqueItems("name")] = Field(
        default=(),
        description="Plugins to run after the defaults, in this order; a default takes its place.",
    )
    disabled: Annotated[tuple[DisabledPlugin, ...], Field(max_length=100), UniqueItems("name")] = Field(
        default=(), description="Default plugins not to run here."
    )


class PluginsSpec(Resource):
    """Changes to the default plugins, by extension point in calling order."""

    multi_point: PluginSetSpec | None = Field(
        default=None, description="Every extension point that the plugin implements."
    )
    pre_enqueue: PluginSetSpec | None = Field(
        default=None, description="Plugins that are called before a pod enters the active queue."
    )
    queue_sort: PluginSetSpec | None = Field(
        default=None, description="Order of the queue; exactly one plugin."
    )
    pre_filter: PluginSetSpec | None = Field(
        default=None, description="Once for each pod, before the filters."
    )
    filter: PluginSetSpec | None = Field(default=None, description="Rules out nodes.")
    post_filter: PluginSetSpec | None = Field(
        default=None, description="When no node is feasible: preemption."
    )
    pre_score: PluginSetSpec | None = Field(default=None, description="Once for each pod, before the scores.")
    score: PluginSetSpec | None = Field(default=None, description="Ranks the feasible nodes.")
    reserve: PluginSetSpec | None = Field(
        default=None, description="Claims and releases what the pod will use."
    )
    permit: PluginSetSpec | None = Field(default=None, description="Approves, delays or refuses the binding.")
    pre_bind: PluginSetSpec | None = Field(
        default=None, description="Plugins that are called before the binding."
    )
    bind: PluginSetSpec | None = Field(default=None, description="Binds the pod.")
    post_bind: PluginSetSpec | None = Field(
        default=None, description="Plugins that are called after the binding."
    )


class PluginConfigSpec(Resource):
    """Arguments of one plugin."""

    name: PluginName = Field(description="Name of the plugin.")
    args: Args = Field(
        default={},
        description="Arguments of the plugin, as in KubeSchedulerConfiguration v1; left out, its defaults.",
    )


class PreemptionSpec(Resource):
    """How room is made for pods of higher priority."""

    via_eviction: bool = Field(
        default=False,
        description="Victims leave through the Eviction API, each with an Eviction record written ahead: a "
        "PodDisruptionBudget is never violated. Left out, they are deleted as kube-scheduler deletes them, "
        "which prefers victims without a budget and violates one where it finds no others.",
    )


QueueName = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", max_length=63)]
"""Value of a label that names a queue."""


class Queue(Resource):
    """Pods that share what a part of the cluster is worth."""

    name: QueueName = Field(
        description='Value of the label plimsoll.dev/queue of its pods; those without are in "default".'
    )
    parent: QueueName | None = Field(
        default=None,
        description="The listed queue that it is below, whose part it shares with the others there; pods "
        "name queues without others below them.",
    )
    weight: int = Field(
        default=1,
        ge=1,
        le=65_535,
        description="Part that the queue may use of the cluster, or of what its parent may use, relative to "
        "the weights of the others there.",
    )
    guaranteed: Amounts | None = Field(
        default=None,
        description="What it deserves, by resource, before the rest is divided by weight; others may use "
        "what it does not request.",
    )
    capability: Amounts | None = Field(
        default=None, description="Ceiling of what its pods may request together, by resource."
    )
    reclaimable: bool = Field(
        default=True, description="Whether other queues may take back what it has above what it deserves."
    )
    reclaim_min_runtime_seconds: int | None = Field(
        default=None,
        ge=0,
        le=2_592_000,
        description="Seconds that its pods run before other queues may take back what they use; all of a "
        "group from the start of its last member. Left out, as its parent has it, else 0.",
    )


class FairShareSpec(Resource):
    """Queues that divide the cluster by weight: the one with the least dominant share is served first."""

    queues: Annotated[tuple[Queue, ...], Field(max_length=100), UniqueItems("name")] = Field(
        default=(), description="The queues; pods that name no listed one are in the queue default."
    )
    reclaim: Literal["Never", "AboveDeserved"] = Field(
        default="Never",
        description="AboveDeserved: a queue below what it deserves takes pods away from reclaimable queues "
        "above, as preemption does.",
    )


class GroupsSpec(Resource):
    """Which pods start together, and where."""

    derive: Literal["Named", "Automatic"] = Field(
        default="Named",
        description="Automatic: the pods of a Job, JobSet, LeaderWorkerSet, RayCluster, training job or "
        "Spark application form a group without a PodGroup, which needs as many members as their owner "
        "says. Named: only pods that name a group have one.",
    )
    topology_levels: Annotated[tuple[LabelKey, ...], Field(max_length=8)] = Field(
        default=(),
        description="Node labels from the widest level to the narrowest, as block, rack, host: a group that "
        "fits in no domain of the level it prefers goes into one of the next wider level. Left out, the "
        "levels of AWS, GKE and NVIDIA's topograph are known.",
    )
    preferred_topology: LabelKey | None = Field(
        default=None, description="Level that groups prefer which state none; left out, they prefer none."
    )


class SchedulingSpec(Resource):
    """One profile: pods that name this scheduler are placed by these plugins."""

    rules: ClassVar = EXTENDER_RULES

    scheduler_name: SchedulerName = Field(
        description="Pods with this spec.schedulerName are served; one policy for each name."
    )
    plugins: PluginsSpec | None = Field(
        default=None, description="Changes to the default plugins; left out, the default plugins run."
    )
    plugin_config: Annotated[tuple[PluginConfigSpec, ...], Field(max_length=100), UniqueItems("name")] = (
        Field(default=(), description="Arguments, by plugin.")
    )
    preemption: PreemptionSpec = Field(
        default=PreemptionSpec.model_construct(), description="How room is made for pods of higher priority."
    )
    extenders: Annotated[tuple[ExtenderSpec, ...], Field(max_length=8), UniqueItems("url_prefix")] = Field(
        default=(), description="Services that are asked over HTTP, in this order; ignorable ones come last."
    )
    fair_share: FairShareSpec | None = Field(
        default=None, description="How pods share the cluster; left out, priority and age alone order them."
    )
    groups: GroupsSpec = Field(
        default=GroupsSpec.model_construct(), description="Which pods start together, and where."
    )
    adopt: AdoptSpec | None = Field(
        default=None,
        description="New pods that get schedulerName without a change of their workloads; plimsoll adopt "
        "writes what does it. Left out, only pods are served that name the scheduler themselves.",
    )
