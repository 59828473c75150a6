"""Ceilings on the evictions of one run, and on the records that are kept."""

from typing import Annotated

from pydantic import Field

from plimsoll.api.schema.fields import CountOrPercent, Duration, ObjectName
from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import Rule, UniqueItems
from plimsoll.api.v1alpha1.schedules import CRON_MESSAGE, TIME_ZONE, is_cron, is_cron_cel


class EvictionBudget(Resource):
    """A ceiling with a time of day; without a schedule it always holds."""

    rules = (
        Rule(
            cel="has(self.schedule) == has(self.duration)",
            holds=lambda self: (self.schedule is None) == (self.duration is None),
            message="a window needs both schedule (when it opens) and duration (how long it stays open)",
        ),
        Rule(
            cel="!has(self.timeZone) || has(self.schedule)",
            holds=lambda self: self.time_zone is None or self.schedule is not None,
            message="a time zone needs a schedule; remove timeZone or give schedule",
            field="timeZone",
        ),
        Rule(
            cel=f"!has(self.schedule) || {is_cron_cel('self.schedule')}",
            holds=lambda self: self.schedule is None or is_cron(self.schedule),
            message=CRON_MESSAGE,
            field="schedule",
        ),
    )

    name: ObjectName = Field(
        description="Name, for the sentences that say what it stopped.", examples=["office-hours"]
    )
    evictions: CountOrPercent = Field(
        description="Evictions in one run while the window is open, as a number or as a share of the pods "
        "in scope; 0 freezes everything."
    )
    schedule: str | None = Field(
        default=None,
        min_length=9,
        max_length=128,
        description="When the window opens, as five fields of cron; left out, it is always open.",
        examples=["0 8 * * mon-fri"],
    )
    duration: Duration | None = Field(
        default=None, description="How long the window stays open, as a duration such as 10h."
    )
    time_zone: str | None = Field(
        default=None,
        pattern=TIME_ZONE,
        max_length=64,
        description="Time zone of schedule, by its IANA name; left out, UTC.",
        examples=["Europe/Berlin", "UTC"],
    )


class EvictionLimits(Resource):
    """Ceilings on one run; the strictest wins, 0 allows none, and "100%" lifts one."""

    total: CountOrPercent = Field(
        default=10, description="Evictions in one run, as a number or as a share of the pods in scope."
    )
    per_node: CountOrPercent = Field(
        default=2,
        description="Evictions from one node in one run, as a number or as a share of its pods in scope.",
    )
    per_namespace: CountOrPercent = Field(
        default=5,
        description="Evictions from one namespace in one run, as a number or as a share of its pods in "
        "scope.",
    )
    per_workload: CountOrPercent = Field(
        default=1,
        description="Evictions from one owner in one run, as a number or as a share of its pods in scope.",
    )
    per_minute: CountOrPercent = Field(
        default=10,
        description="Evictions of this policy within any minute, as a number or as a share of the pods in "
        "scope; a later run goes on with what is left.",
    )
    budgets: Annotated[tuple[EvictionBudget, ...], Field(max_length=16), UniqueItems("name")] = Field(
        default=(), description="Further ceilings on one run, by time of day; the strictest open one wins."
    )


class RecordRetention(Resource):
    """How many Eviction records of the policy are kept, and for how long; open ones are never dropped."""

    max_count: int = Field(
        default=1000,
        ge=1,
        le=100_000,
        description="Records kept; past it the oldest finished ones are deleted, and while none is "
        "finished no new dry-run record is written.",
    )
    ttl_seconds: int = Field(
        default=604_800,
        ge=60,
        le=31_536_000,
        description="Seconds after which a finished record is deleted; the default is seven days.",
    )
