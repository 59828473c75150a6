"""Defines columns of claims and slices of devices.

Source: kubernetes v1.36 ``pkg/printers/internalversion/printers.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.table_columns.columns import AGE, NAME, Column, at, field

if TYPE_CHECKING:
    import datetime as dt

    from roadstead.values.resources import Obj


def _claim_state(claim: Obj, _now: dt.datetime) -> str:
    """The state of a claim: "pending", "allocated,reserved", "deleted,allocated" and so on."""
    deleted = bool(claim["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if at(claim, "status", "allocation") is not None:
        states.append("allocated")
        if at(claim, "status", "reservedFor"):
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    return ",".join(states)


RESOURCE_CLAIMS = (NAME, Column("State", _claim_state), AGE)
RESOURCE_SLICES = (
    NAME,
    Column("Node", field("spec", "nodeName")),
    Column("Driver", field("spec", "driver")),
    Column("Pool", field("spec", "pool", "name")),
    AGE,
)
NAME_AND_AGE = (NAME, AGE)
