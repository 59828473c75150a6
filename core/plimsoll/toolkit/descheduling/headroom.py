"""Counts how many further pods of a size fit, so that the next ones need not wait for a machine.

Formula::

    places(node) = min over r of floor((allocatable[r] - requested[r]) / size[r]), at most its free pods

Units: pods. Edges: closed and cordoned nodes, and those that are to be emptied, have no places; a node
without a zone is in the zone "".
"""

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from plimsoll.framework import PluginArgs
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.framework.selectors import is_closed
from plimsoll.model.counted import counted
from plimsoll.model.kinds.requests import to_integer
from plimsoll.model.quantity import QuantityError
from plimsoll.toolkit.scheduling.topology_levels import ZONE


class HeadroomArg(PluginArgs):
    """Pods that must still fit."""

    pods: Annotated[StrictInt, Field(ge=1)] = Field(description="Number of further pods that must still fit.")
    requests: dict[StrictStr, StrictStr | StrictInt] = Field(
        min_length=1, description="What each of these pods requests, by resource, as quantities."
    )
    per_zone: StrictBool = Field(default=False, description="Whether so many pods must fit in each zone.")

    @model_validator(mode="after")
    def _readable(self) -> Self:
        for name, quantity in self.requests.items():
            try:
                amount = to_integer(name, quantity)
            except QuantityError as exc:
                raise ValueError(f"requests.{name}: {exc}") from exc
            if amount <= 0:
                raise ValueError(f"requests.{name}: {quantity} is not more than 0")
        return self


def places(asked: HeadroomArg, but: str, context: StrategyContext) -> Mapping[str, int]:
    """The number of places by zone, "" for all together; without those of the node ``but``."""
    cluster, found = context.cluster, Counter[str]()
    size = cluster.requests_row({name: to_integer(name, each) for name, each in asked.requests.items()})
    wanted = size.nonzero()[0]
    missing = [name for name in asked.requests if cluster.axis_of(name) is None]
    for row, node in enumerate(cluster.nodes):
        zone = node.labels.get(ZONE, "") if asked.per_zone else ""
        found[zone] += 0
        is_open = not (is_closed(node) or node.spec.unschedulable) and context.prospects.is_target(node.name)
        if missing or node.name == but or not is_open:
            continue
        free = cluster.allocatable[row, wanted] - cluster.requested[row, wanted]
        found[zone] += max(int((free // size[wanted]).min()), 0)
    return found


def shortage(asked: HeadroomArg, before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Where too few pods would fit, and fewer than before, as a clause; "" for nowhere."""
    for zone in sorted(after):
        if after[zone] < asked.pods and after[zone] < before.get(zone, 0):
            where = f" in zone {zone}" if zone else ""
            size = ", ".join(f"{name} {each}" for name, each in asked.requests.items())
            fitting = counted(after[zone], "pod")
            return f"{fitting} of {size} would fit{where}, and headroom asks for {asked.pods}"
    return ""
