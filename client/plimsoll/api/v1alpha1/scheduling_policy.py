"""SchedulingPolicy: the specification of scheduling and rebalancing, and its status."""

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.api.schema.conditions import Conditions
from plimsoll.api.schema.fields import ObjectName, PluginName, Timestamp
from plimsoll.api.schema.resource import CustomResource, Definition, PrinterColumn, Resource
from plimsoll.api.schema.rules import UniqueItems
from plimsoll.api.v1alpha1.real_load import LoadResource
from plimsoll.api.v1alpha1.rebalancing import Mode, ObjectiveName, RebalancingSpec
from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.api.v1alpha1.scope import Scope


class SchedulingPolicySpec(Resource):
    """What the user wants; an empty one schedules nothing and moves nothing."""

    suspend: bool = Field(
        default=False,
        description="Stops new decisions of this policy; moves under way are seen to their end. While "
        "suspended, its scheduling describes the scheduler of that name: forecasts for its pods use it.",
    )
    scope: Scope = Field(
        default=Scope.model_construct(), description="Pods and nodes that rebalancing looks at."
    )
    scheduling: SchedulingSpec | None = Field(
        default=None, description="How pods are scheduled; left out, this policy schedules none."
    )
    rebalancing: RebalancingSpec | None = Field(
        default=None, description="How placed pods are kept well placed; left out, none is moved."
    )


class RefusalExample(Resource):
    """How many candidates were refused for one reason."""

    reason: str = Field(min_length=1, max_length=253, description="Why, in one word for machines.")
    count: int = Field(ge=0, description="Pods refused for it; each once, whichever strategies wanted it.")
    message: str | None = Field(default=None, max_length=1024, description="Why, in a sentence for people.")
    examples: Annotated[tuple[str, ...], Field(max_length=5)] = Field(
        default=(),
        description="Some of the pods as namespace/name with their owner, of as many owners as there are.",
    )


class RunCounts(Resource):
    """What one run came to; later counts grow until its moves are finished."""

    considered: int = Field(default=0, ge=0, description="Candidates that the strategies returned.")
    refused: Annotated[tuple[RefusalExample, ...], Field(max_length=100), UniqueItems("reason")] = Field(
        default=(), description="Candidates that were not planned, by reason."
    )
    planned: int = Field(default=0, ge=0, description="Moves planned, or predicted in a dry run.")
    evicted: int = Field(default=0, ge=0, description="Evictions that the API server accepted.")
    verified: int = Field(default=0, ge=0, description="Moves whose replacement is ready on another node.")


class MoveTotals(Resource):
    """What the moves of all runs came to, by the Eviction records that are kept."""

    moved: int = Field(default=0, ge=0, description="Moves whose replacement is ready on another node.")
    returned: int = Field(default=0, ge=0, description="Moves whose replacement came back to the same node.")
    failed: int = Field(
        default=0, ge=0, description="Moves that failed: refused, or without a ready replacement in time."
    )
    blocked: int = Field(default=0, ge=0, description="Moves that a budget stopped.")
    open: int = Field(default=0, ge=0, description="Moves that wait for approval or are under way.")
    predicted: int = Field(default=0, ge=0, description="Moves that the latest dry run predicts.")
    forecasts: int = Field(
        default=0, ge=0, description="Moves whose replacement another scheduler has placed."
    )
    forecast_hits: int = Field(
        default=0,
        ge=0,
        description="Moves whose replacement another scheduler placed on the expected node or one as good.",
    )
    forecast_hit_percent: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="Percent of forecasts that came true, rounded down; left out below ten forecasts.",
    )


class RunOutcome(StrEnum):
    """How a run ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CRASHED = "Crashed"
    TIMED_OUT = "TimedOut"


class StrategyFailure(Resource):
    """A strategy that could not do its work in the last run."""

    name: PluginName = Field(description="Name of the strategy.")
    message: str = Field(max_length=1024, description="What went wrong.")


class OptimisationStatus(Resource):
    """How good the plan of an Optimal run is; lower is better, every move is priced."""

    objective: ObjectiveName = Field(description="What it was to bring about.")
    before: float = Field(description="The objective as things were.")
    value: float = Field(description="The objective after all moves, the strategies asked again.")
    bound: float = Field(
        description="No plan is better than this while strategies want what they want now; 0 says nothing."
    )
    proven: float = Field(description="What the moves of the planner Proven would have come to.")
    moves: int = Field(ge=0, description="Moves that lead there; limits may spread them over several runs.")
    gap_percent: float = Field(
        ge=0, description="How far the value may be from the best, 0 when proven best."
    )
    seconds: float = Field(ge=0, description="Spent on the search.")
    waiting: int = Field(
        default=0, ge=0, description="Pending pods that fitted nowhere and that a strategy would serve."
    )
    served: int = Field(
        default=0, ge=0, description="How many pending pods the moves of this run make room for."
    )


class ResourceLoad(Resource):
    """The load of the policy's nodes by one resource, in percent of what is allocatable."""

    resource: LoadResource = Field(description="Name of the resource.")
    mean_percent: float = Field(ge=0, description="Mean over the nodes.")
    spread_points: float = Field(ge=0, description="Standard deviation between the nodes.")
    hottest_percent: float = Field(ge=0, description="The largest of all nodes.")
    hottest_node: ObjectName = Field(description="The node that has it.")


class LoadLeftOut(Resource):
    """Nodes that load says nothing certain about."""

    reason: str = Field(
        min_length=1,
        max_length=253,
        description="NotMeasured: there is no reading; Stale: the latest reading is too old; Estimated: pods "
        "that are not measured make more than a tenth of its load, so no pod is moved off or to it by load.",
    )
    nodes: int = Field(ge=1, description="How many nodes.")
    examples: Annotated[tuple[str, ...], Field(max_length=5)] = Field(default=(), description="Some of them.")


class RunLoad(Resource):
    """The load of the policy's nodes, as the run found it."""

    hot_nodes: int = Field(ge=0, description="Nodes that strategies found over-used.")
    hot_examples: Annotated[tuple[str, ...], Field(max_length=5)] = Field(
        default=(), description="Some of them."
    )
    resources: Annotated[tuple[ResourceLoad, ...], Field(max_length=2), UniqueItems("resource")] = Field(
        default=(),
        description="Load of the nodes for each resource; left out without a node that is measured.",
    )
    left_out: Annotated[tuple[LoadLeftOut, ...], Field(max_length=3), UniqueItems("reason")] = Field(
        default=(), description="Nodes that are not measured, by the reason."
    )


class LastRun(Resource):
    """The run that started last."""

    start_time: Timestamp = Field(description="When it started.")
    completion_time: Timestamp | None = Field(default=None, description="When its plan was carried out.")
    mode: Mode = Field(description="Mode it ran in.")
    result: RunOutcome | None = Field(
        default=None,
        description="Succeeded; Failed: a strategy could not judge the cluster, the others ran; Crashed: the "
        "run broke off; TimedOut: the plan was not ready in time. Left out while the run is under way.",
    )
    message: str | None = Field(default=None, max_length=4096, description="What came of it, in a sentence.")
    failures: Annotated[tuple[StrategyFailure, ...], Field(max_length=100), UniqueItems("name")] = Field(
        default=(), description="Strategies that failed; the others ran."
    )
    optimisation: OptimisationStatus | None = Field(
        default=None, description="How good the plan is, where the planner Optimal made it."
    )
    load: RunLoad | None = Field(
        default=None, description="What nodes use, where strategies move pods by load."
    )


class SchedulingPolicyStatus(Resource):
    """Conditions of the policy and figures of its runs; written by the operator alone."""

    observed_generation: int | None = Field(
        default=None, ge=0, description="Generation of the spec that this status is about."
    )
    conditions: Conditions = Field(
        default=(),
        description="Accepted: the operator can use the spec. Ready: the policy is at work. Degraded: "
        "something is missing or keeps failing.",
    )
    last_run: LastRun | None = Field(default=None, description="The rebalancing run that started last.")
    next_run_time: Timestamp | None = Field(default=None, description="When rebalancing runs next.")
    counts: RunCounts | None = Field(default=None, description="What the last run came to.")
    totals: MoveTotals | None = Field(default=None, description="What the moves of all runs came to.")


class SchedulingPolicy(CustomResource):
    """How pods are scheduled, and how placed pods are kept well placed."""

    definition: ClassVar = Definition(
        kind="SchedulingPolicy",
        plural="schedulingpolicies",
        short_name="spol",
        scope="Cluster",
        columns=(
            PrinterColumn(
                "Scheduler", ".spec.scheduling.schedulerName", description="Scheduler name it serves."
            ),
            PrinterColumn("Mode", ".spec.rebalancing.mode", description="Whether rebalancing evicts."),
            PrinterColumn("Accepted", '.status.conditions[?(@.type=="Accepted")].status'),
            PrinterColumn("Ready", '.status.conditions[?(@.type=="Ready")].status'),
            PrinterColumn("Degraded", '.status.conditions[?(@.type=="Degraded")].status'),
            PrinterColumn("Paused", '.status.conditions[?(@.type=="Paused")].status'),
            PrinterColumn("Planned", ".status.counts.planned", "integer", "Moves planned by the last run."),
            PrinterColumn("Moved", ".status.totals.moved", "integer", "Moves of all runs that ended well."),
            PrinterColumn("Returned", ".status.totals.returned", "integer", "Moves whose pod came back."),
            PrinterColumn("Failed", ".status.totals.failed", "integer", "Moves of all runs that failed."),
            PrinterColumn("Last Run", ".status.lastRun.startTime", "date", "Time since the last run."),
            PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
            PrinterColumn("Reason", '.status.conditions[?(@.type=="Degraded")].reason', priority=1),
            PrinterColumn(
                "Evicted", ".status.counts.evicted", "integer", "Evicted by the last run.", priority=1
            ),
            PrinterColumn(
                "Forecast Hits",
                ".status.totals.forecastHitPercent",
                "integer",
                "Percent of the replacements that other schedulers placed as expected.",
                priority=1,
            ),
            PrinterColumn("Suspended", ".spec.suspend", "boolean", priority=1),
            PrinterColumn("Next Run", ".status.nextRunTime", priority=1),
            PrinterColumn(
                "Result", ".status.lastRun.message", description="What the last run came to.", priority=1
            ),
            PrinterColumn("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
        ),
        selectable_fields=(".spec.scheduling.schedulerName", ".spec.rebalancing.mode"),
    )

    kind: Literal["SchedulingPolicy"] = Field(default="SchedulingPolicy", description="Kind of the object.")
    spec: SchedulingPolicySpec = Field(description="Scheduling and rebalancing as the user wants them.")
    status: SchedulingPolicyStatus | None = Field(
        default=None,
        description="Conditions of the policy and figures of its runs; written by the operator alone.",
    )
