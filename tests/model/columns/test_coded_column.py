"""Values encoded as small integers; codes without nodes are dropped."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.coded_column import STALE_VALUES, CodedColumn
from plimsoll.model.columns.columns import ABSENT
from plimsoll.testing.builders import a_node
from plimsoll.testing.columns import validate

ZONE = "topology.kubernetes.io/zone"


@given(st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 400))), max_size=400))
def test_every_row_keeps_its_value_whatever_is_forgotten(changes: list[tuple[int, int | None]]) -> None:
    """And there are never many more values than rows."""
    column: Any = CodedColumn(5)
    expected = [None] * 5
    for row, value in changes:
        column.set(row, value)
        expected[row] = value  # type: ignore[assignment] # a fake differs on purpose
        column.compact(5)
        assert len(column.values) <= 2 * 5 + STALE_VALUES

    assert [None if each == ABSENT else column.values[each] for each in column.ids] == expected
    assert all(column.find(value) == each for each, value in enumerate(column.values))


def test_values_that_no_node_has_are_forgotten_first() -> None:
    """Those in use stay, under other ids."""
    column: Any = CodedColumn(2)
    for number in range(STALE_VALUES + 5):
        column.set(1, f"old-{number}")
    column.set(0, "kept")

    assert column.compact(2)
    assert sorted(column.values) == ["kept", f"old-{STALE_VALUES + 4}"]
    assert column.find("old-0") == ABSENT
    assert not column.compact(2)


def test_label_values_of_nodes_that_left_do_not_add_up() -> None:
    """An autoscaler's nodes have host names of their own; counts by domain stay right."""
    cluster = Cluster()
    for number in range(500):
        cluster.set_node(a_node(f"n{number}", labels={ZONE: f"zone-{number}", "pool": "spot"}))
        cluster.label(ZONE)
        if number >= 3:
            cluster.remove_node(f"n{number - 3}")
        validate(cluster)

    assert len(cluster.label(ZONE).values) <= 2 * 3 + STALE_VALUES
    zones = {cluster.label(ZONE).values[each] for each in cluster.label(ZONE).ids[: len(cluster)]}
    assert zones == {"zone-497", "zone-498", "zone-499"}
    assert np.all(cluster.label("pool").ids[: len(cluster)] == cluster.label("pool").find("spot"))
