"""Prices of nodes by the hour, from the nodes themselves or from a table of machine types.

Formula::

    price of a node = annotation, else label ``plimsoll.dev/price-per-hour``, else the row of the table with
                      the node's instance type that names most of its zone and capacity type
    share of a pod  = mean of its shares of the node's allocatable cpu and memory

Units: currency an hour, by ISO 4217 code. Currencies are never converted.
Edges: a text that is no price counts as none; so does a node whose type no row has.
Source: the labels are those of Kubernetes and of Karpenter (v1).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from plimsoll.model.kinds.node import Node

#: Annotation or label of a node: ``0.192 EUR``; labels have no blanks, so there ``0.192_EUR``.
PRICE = "plimsoll.dev/price-per-hour"

INSTANCE_TYPE, ZONE = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"
CAPACITY_TYPE = "karpenter.sh/capacity-type"

_PRICE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)[ _]([A-Z]{3})")

_SAVING = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ([A-Z]{3})/(hour|day|month)")

#: Hours of the units in which savings are given.
HOURS = {"hour": 1, "day": 24, "month": 720}

Currency = Annotated[str, msgspec.Meta(pattern="^[A-Z]{3}$")]
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Price(msgspec.Struct, frozen=True):
    """An amount an hour."""

    per_hour: float
    currency: str

    def __str__(self) -> str:
        amount = f"{self.per_hour:.0f}" if self.per_hour >= 1000 else f"{round(self.per_hour, 4):.4g}"
        return f"{amount} {self.currency}"


class PriceRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The price of machines; an empty zone or capacity type is any."""

    instance_type: str
    zone: str = ""
    capacity_type: str = ""
    per_hour: Amount

    def fits(self, labels: Mapping[str, str]) -> bool:
        """Whether it is about a node with these labels."""
        return (
            self.instance_type == labels.get(INSTANCE_TYPE)
            and self.zone in ("", labels.get(ZONE))
            and self.capacity_type in ("", labels.get(CAPACITY_TYPE))
        )


class PriceTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices by machine type, in one currency."""

    currency: Currency
    nodes: tuple[PriceRow, ...]


def price_of(node: Node, table: PriceTable | None = None) -> Price | None:
    """The price of a node; None if it is not known."""
    for said in (node.metadata.annotations.get(PRICE), node.labels.get(PRICE)):
        found = _PRICE.fullmatch(said) if said is not None else None
        if found is not None:
            return Price(float(found[1]), found[2])
    if table is None:
        return None
    rows = [each for each in table.nodes if each.fits(node.labels)]
    best = max(rows, key=lambda each: (bool(each.zone) + bool(each.capacity_type), each.zone), default=None)
    return None if best is None else Price(best.per_hour, table.currency)


def saving_of(text: str) -> Price:
    """A saving such as ``1 EUR/day``, by the hour.

    Raises:
        ValueError: It cannot be read.
    """
    found = _SAVING.fullmatch(text)
    if found is None:
        raise ValueError(
            f'"{text[:64]}" is no saving; write an amount, a currency and a unit, such as "1 EUR/day"'
        )
    return Price(float(found[1]) / HOURS[found[3]], found[2])


def prices_of(nodes: Iterable[Node], table: PriceTable | None = None) -> dict[str, float]:
    """The prices of all of them together, by currency; nodes without one are left out."""
    total: defaultdict[str, float] = defaultdict(float)
    for price in filter(None, (price_of(each, table) for each in nodes)):
        total[price.currency] += price.per_hour
    return dict(total)


def share_of_node(requests: Mapping[str, int], allocatable: Mapping[str, int]) -> float:
    """The share of a node's price that a pod with these requests bears."""
    shares = [
        requests.get(each, 0) / allocatable[each] for each in ("cpu", "memory") if allocatable.get(each)
    ]
    return sum(shares) / len(shares) if shares else 0.0
