"""Lays out the answers of ``plimsoll top``."""

from plimsoll.cli.output import View
from plimsoll.cli.tables import Column, Table
from plimsoll.cli.views.fit import note_lines
from plimsoll.inspection.load import NodeLoads, PodLoads

RIGHT = ("CPU", "MEMORY", "CPU REQUESTED", "MEMORY REQUESTED", "AGE")


def nodes_view(answer: NodeLoads) -> View:
    """A table of nodes, and notes."""
    rows = [
        (
            each.node,
            _percent(each.used.get("cpu")),
            _percent(each.used.get("memory")),
            _percent(each.requested.get("cpu")),
            _percent(each.requested.get("memory")),
            "" if each.age_seconds is None else f"{each.age_seconds:.0f}s",
            each.state,
        )
        for each in answer.nodes
    ]
    return [
        Table(("NODE", *(Column(each, right=True) for each in RIGHT), "STATE"), rows),
        *note_lines(answer.notes),
    ]


def pods_view(answer: PodLoads) -> View:
    """A table of pods, and notes."""
    named = [Column(answer.resource.upper(), right=True)] if answer.resource else []
    rows = [
        (
            each.pod,
            each.node,
            *([each.requested] if answer.resource else []),
            f"{each.cpu_milli}m",
            f"{each.memory_bytes >> 20}Mi",
            each.basis,
        )
        for each in answer.pods
    ]
    columns: tuple[Column | str, ...] = (
        "POD",
        "NODE",
        *named,
        Column("CPU", right=True),
        Column("MEMORY", right=True),
        "BASIS",
    )
    if not rows and answer.resource:
        return [f"no pod requests {answer.resource}", *note_lines(answer.notes)]
    return [Table(columns, rows), *note_lines(answer.notes)]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0f}%"
