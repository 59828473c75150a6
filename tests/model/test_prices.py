"""The price of a node: its own word, then the row of the table that says most about it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from plimsoll.model.prices import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    PRICE,
    ZONE,
    Price,
    PriceTable,
    price_of,
    share_of_node,
)
from plimsoll.testing.builders import a_node

TABLE = msgspec.convert(
    {
        "currency": "EUR",
        "nodes": [
            {"instanceType": "m", "perHour": 4},
            {"instanceType": "m", "zone": "a", "perHour": 3},
            {"instanceType": "m", "capacityType": "spot", "perHour": 2},
            {"instanceType": "m", "zone": "a", "capacityType": "spot", "perHour": 1},
        ],
    },
    PriceTable,
)


def machine(kind: str = "m", zone: str = "b", capacity: str = "on-demand", **more: str) -> dict[str, str]:
    return {INSTANCE_TYPE: kind, ZONE: zone, CAPACITY_TYPE: capacity, **more}


@pytest.mark.parametrize(
    ("labels", "annotation", "price"),
    [
        (machine(), None, Price(4, "EUR")),
        (machine(zone="a"), None, Price(3, "EUR")),
        (machine(capacity="spot"), None, Price(2, "EUR")),
        (machine(zone="a", capacity="spot"), None, Price(1, "EUR")),
        ({INSTANCE_TYPE: "m"}, None, Price(4, "EUR")),
        (machine("xl"), None, None),
        ({}, None, None),
        (machine(), "0.192 USD", Price(0.192, "USD")),
        (machine(**{PRICE: "7_CHF"}), None, Price(7, "CHF")),
        (machine(**{PRICE: "7_CHF"}), "9 USD", Price(9, "USD")),
        (machine(), "cheap", Price(4, "EUR")),
        (machine(), "-1 USD", Price(4, "EUR")),
        (machine(), "1e9 USD", Price(4, "EUR")),
    ],
)
def test_the_price_of_a_node(labels: dict[str, str], annotation: str | None, price: Price | None) -> None:
    """What cannot be read counts as not said."""
    annotations = {} if annotation is None else {PRICE: annotation}

    assert price_of(a_node("n", labels=labels, annotations=annotations), TABLE) == price


@pytest.mark.parametrize(
    "given",
    [
        {"nodes": []},
        {"currency": "euro", "nodes": []},
        {"currency": "EUR", "nodes": [{"instanceType": "m", "perHour": -1}]},
        {"currency": "EUR", "nodes": [{"instanceType": "m", "perHour": 1, "zones": "a"}]},
    ],
)
def test_another_document_is_refused(given: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given, PriceTable)


@pytest.mark.parametrize(
    ("requests", "share"),
    [({"cpu": 1000, "memory": 4}, 0.375), ({"cpu": 2000}, 0.25), ({"gpu": 1}, 0.0)],
)
def test_a_pod_bears_the_mean_of_its_shares(requests: dict[str, int], share: float) -> None:
    """Of 4 cores and 8 bytes: a quarter and a half are 0.375 of the price."""
    assert share_of_node(requests, {"cpu": 4000, "memory": 8}) == share
    assert share_of_node(requests, {}) == 0.0


@pytest.mark.parametrize(
    ("amount", "said"),
    [(0.192, "0.192"), (12.345, "12.35"), (999, "999"), (1234.5, "1234"), (15e6, "15000000"), (1e-5, "0")],
)
def test_amounts_are_written_without_an_exponent(amount: float, said: str) -> None:
    """What a large cluster costs in yen is a number that people read."""
    assert str(Price(amount, "JPY")) == f"{said} JPY"
