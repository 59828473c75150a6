"""Rebalancing of a policy: strategies, schedule, protections and limits."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from plimsoll.api.schema.fields import PluginName
from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import Rule, UniqueItems
from plimsoll.api.v1alpha1.evictor import EvictorSpec
from plimsoll.api.v1alpha1.limits import EvictionLimits, RecordRetention
from plimsoll.api.v1alpha1.metrics_providers import MetricsProviderSpec, source_of
from plimsoll.api.v1alpha1.prometheus import PrometheusProviderSpec
from plimsoll.api.v1alpha1.schedules import Schedule
from plimsoll.api.v1alpha1.scheduling import Args


class Mode(StrEnum):
    """What becomes of a plan."""

    DRY_RUN = "DryRun"
    APPROVE = "Approve"
    ENFORCE = "Enforce"


class PlannerName(StrEnum):
    """Who decides which candidates are moved."""

    PROVEN = "Proven"
    UPSTREAM = "Upstream"
    OPTIMAL = "Optimal"


class ObjectiveName(StrEnum):
    """What the Optimal planner brings about."""

    FEWEST_VIOLATIONS = "FewestViolations"
    SMALLEST_SPREAD = "SmallestSpread"
    FEWEST_NODES = "FewestNodes"


class OptimizerSpec(Resource):
    """What the planner Optimal is asked; the others do not look at it."""

    objective: ObjectiveName = Field(
        default=ObjectiveName.FEWEST_VIOLATIONS,
        description="FewestViolations: as few pods as possible where a strategy does not want them, and "
        "domains as even as their constraints ask. SmallestSpread: cpu and memory of all nodes used to the "
        "same degree; by what pods use if a strategy has metricsUtilization, then for the resources of its "
        "thresholds, else by requests. FewestNodes: as many nodes as possible without pods that could leave.",
    )
    time_limit_seconds: int = Field(
        default=10, ge=1, le=600, description="Seconds of one run that may be spent on the search."
    )
    move_price: float = Field(
        default=1,
        ge=0,
        le=1000,
        description="What one move costs. A violation is worth 1000, a freed node 20, a percentage point "
        "of one node's distance from the mean 1, and one above a strategy's target by metricsUtilization 20.",
    )


#: Whether a spec may say what descheduler's profiles say.
IS_UPSTREAM = "(has(self.planner) && self.planner == 'Upstream')"


class StrategySpec(Resource):
    """One strategy: a source of candidates for moves."""

    name: PluginName = Field(
        description="Name of the strategy, as in descheduler v1alpha2 or as its third party registered it.",
        examples=["LowNodeUtilization"],
    )
    args: Args = Field(
        default={},
        description="Arguments of the strategy, as in descheduler v1alpha2; left out, its defaults.",
    )
    evictor: EvictorSpec | None = Field(
        default=None,
        description="Rules that say which pods this strategy may evict, in place of the policy's evictor, "
        "as in a profile of descheduler; only with planner Upstream.",
    )


class RebalancingSpec(Resource):
    """Periodic runs that plan moves, prove each of them, and carry them out when told to."""

    rules: ClassVar = (
        Rule(
            cel=f"!has(self.evictor) || !has(self.evictor.nodeFit) || self.evictor.nodeFit || {IS_UPSTREAM}",
            holds=lambda spec: spec.evictor.node_fit or spec.planner is PlannerName.UPSTREAM,
            message="false is for planner Upstream only; the others prove that the pod has another node",
            field="evictor.nodeFit",
        ),
        Rule(
            cel=f"!has(self.strategies) || !self.strategies.exists(s, has(s.evictor)) || {IS_UPSTREAM}",
            holds=lambda spec: (
                spec.planner is PlannerName.UPSTREAM or all(each.evictor is None for each in spec.strategies)
            ),
            message="a strategy's evictor is for planner Upstream only; the others ask that of the policy",
            field="strategies",
        ),
        Rule(
            cel="!has(self.strategies)"
            " || self.strategies.all(s, self.strategies.exists_one(t, t.name == s.name))"
            f" || {IS_UPSTREAM}",
            holds=lambda spec: (
                spec.planner is PlannerName.UPSTREAM
                or len({each.name for each in spec.strategies}) == len(spec.strategies)
            ),
            message="each strategy may occur once; only with planner Upstream it may occur several times",
            field="strategies",
        ),
    )

    mode: Mode = Field(
        default=Mode.DRY_RUN,
        description="DryRun records what would be moved and evicts nothing; Approve records it and waits "
        "until a person annotates the record with plimsoll.dev/approved=true; Enforce evicts.",
    )
    planner: PlannerName = Field(
        default=PlannerName.PROVEN,
        description="Proven moves a pod only where the scheduler's own code proves that its replacement "
        "goes to a better node; Upstream evicts what descheduler would, without a proof; Optimal searches "
        "for the cheapest proven moves to the best placement.",
    )
    optimizer: OptimizerSpec = Field(
        default=OptimizerSpec.model_construct(),
        description="Objective, time limit and price of a move of the planner Optimal.",
    )
    deferred_eviction_timeout_seconds: int = Field(
        default=3600,
        ge=60,
        le=86400,
        description="Seconds within which a pod must leave whose eviction another component carries out, "
        "such as KubeVirt by a live migration; the target is held for that long.",
    )
    schedule: Schedule = Field(
        default=Schedule.model_construct(interval_seconds=300),
        description="When it runs; every five minutes when left out.",
    )
    strategies: Annotated[tuple[StrategySpec, ...], Field(max_length=100)] = Field(
        default=(),
        description="Strategies to run, in this order, each of them once; with planner Upstream one may "
        "occur several times, as in several profiles of descheduler. None plans nothing.",
    )
    evictor: EvictorSpec = Field(
        default=EvictorSpec.model_construct(), description="Rules that say which pods may be evicted at all."
    )
    surge: bool = Field(
        default=False,
        description="Whether pods of Deployments are moved replacement first where that is possible: the "
        "only one, which the evictor protects, by a rollout; one of several by one replica more and one "
        "less. Needs the rights to patch and to scale Deployments; the planner Upstream ignores it.",
    )
    deletion_costs: bool = Field(
        default=False,
        description="Whether pods that the plan wants gone get the least "
        "controller.kubernetes.io/pod-deletion-cost, so that a ReplicaSet that shrinks deletes them first: "
        "that is no further restart. New pods avoid nodes that it would empty but for a limit or a budget. "
        "Not in mode DryRun; a cost that somebody else has set stays.",
        json_schema_extra={"default": None},
    )
    metrics_providers: Annotated[
        tuple[MetricsProviderSpec, ...], Field(max_length=2), UniqueItems("source")
    ] = Field(default=(), description="Where strategies find actual usage; without any they go by requests.")
    anomaly_rounds: int = Field(
        default=1,
        ge=1,
        le=100,
        description="Runs in a row in which a utilisation strategy must find a node over-used before pods "
        "are moved off it; 1 acts immediately. A restart of the operator resets the count; ignored by "
        "Upstream.",
    )
    minimum_gain_percent: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="The smallest gain worth a restart: how much higher the scheduler must score the target "
        "than the pod's present node, in percent of the highest possible score, while that node would still "
        "take the pod. Left out: 1 where only the score speaks for a move; nothing where the move mends what "
        "its strategy complains of. Strategies that want a restart, or have an order of targets of their "
        "own, are exempt.",
    )
    minimum_forecast_hit_percent: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="For pods of other schedulers: percent of the replacements that must have landed on the "
        "expected node, or on one that was as good, by the records that are kept; below that such pods stay. "
        "Fewer than ten replacements say nothing. Left out, nothing is required.",
    )
    limits: EvictionLimits = Field(
        default=EvictionLimits.model_construct(), description="Ceilings on the evictions of one run."
    )
    records: RecordRetention = Field(
        default=RecordRetention.model_construct(),
        description="How many Eviction records are kept, and for how long.",
    )

    @property
    def prometheus(self) -> PrometheusProviderSpec | None:
        """The Prometheus server, if there is one."""
        return next((each.prometheus for each in self.metrics_providers if each.prometheus is not None), None)

    @property
    def usage_sources(self) -> frozenset[str]:
        """Where strategies say that usage comes from; "" stands among them for requests."""
        return frozenset(source_of(strategy.args)[0] for strategy in self.strategies)
