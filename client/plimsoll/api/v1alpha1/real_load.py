"""Load figures of Eviction records: of both nodes, of the pod as expected, of its replacement as measured."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from plimsoll.api.schema.fields import Quantity, Timestamp
from plimsoll.api.schema.resource import Resource
from plimsoll.api.schema.rules import UniqueItems

LoadResource = Literal["cpu", "memory"]


class LoadBasis(StrEnum):
    """What the expected use of a pod rests on."""

    MEASURED = "Measured"
    STALE = "Stale"
    WORKLOAD = "Workload"
    REQUEST = "Request"


class NodeLoadChange(Resource):
    """The load of one node, in percent of its allocatable."""

    before_percent: float = Field(
        ge=0, description="Load of the node before the move, in percent of its allocatable."
    )
    after_percent: float = Field(
        ge=0, description="Load of the node that is expected after the move, in percent of its allocatable."
    )


class MovedResource(Resource):
    """What a move does to the load of two nodes, by one resource."""

    resource: LoadResource = Field(description="Name of the resource.")
    expected: Quantity = Field(description="What the pod is expected to use.")
    source: NodeLoadChange = Field(description="Load of the node that the pod leaves.")
    target: NodeLoadChange = Field(description="Load of the node that the replacement is expected on.")


class MovedLoad(Resource):
    """The load that was the reason for a move."""

    basis: LoadBasis = Field(
        description="What the pod's expected use rests on: Measured, its recent readings; Stale, its older"
        " ones; Workload, what pods of its workload have used; Request, a share of its requests."
    )
    resources: Annotated[tuple[MovedResource, ...], Field(max_length=2), UniqueItems("resource")] = Field(
        default=(), description="Expected use and load of each resource."
    )


class UsedResource(Resource):
    """What the replacement uses of one resource."""

    resource: LoadResource = Field(description="Name of the resource.")
    used: Quantity = Field(description="Smoothed measured use of the replacement.")
    error_percent: float | None = Field(
        default=None,
        description="Use measured above what was expected, in percent of what was "
        "expected; below 0 where it is less. Left out where nothing was expected.",
    )


class UsedLoad(Resource):
    """What the replacement was measured to use once it had started up."""

    time: Timestamp = Field(description="When it was measured.")
    resources: Annotated[tuple[UsedResource, ...], Field(max_length=2), UniqueItems("resource")] = Field(
        default=(), description="Measured use of each resource."
    )
