"""Ceilings on the evictions of one run, and on the records that are kept."""

from pydantic import Field

from plimsoll.api.v1alpha1.amounts import CountOrPercent
from plimsoll.api.v1alpha1.resource import Resource


class EvictionLimits(Resource):
    """Ceilings on one run; the strictest wins, 0 allows none, and "100%" lifts one."""

    total: CountOrPercent = Field(
        default=10, description="Evictions in one run, as a number or as a share of the pods in scope."
    )
    per_node: CountOrPercent = Field(
        default=2, description="Evictions from one node in one run, as a number or as a share of its pods."
    )
    per_namespace: CountOrPercent = Field(
        default=5,
        description="Evictions from one namespace in one run, as a number or as a share of its pods.",
    )
    per_workload: CountOrPercent = Field(
        default=1, description="Evictions from one owner in one run, as a number or as a share of its pods."
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
