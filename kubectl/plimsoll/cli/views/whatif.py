"""Lays out the answer of ``plimsoll whatif``."""

from plimsoll.cli.output import View
from plimsoll.cli.tables import Column, Table
from plimsoll.cli.views.fit import note_lines
from plimsoll.inspection.changes.what_if_answer import NodeRequests, RequestedAmounts, WhatIfAnswer

_MIB = 2**20


def what_if_view(answer: WhatIfAnswer, *, wide: bool = False) -> View:
    """The effects on pods, plans of policies, and nodes; tables without rows are left out."""
    view: list[Table | str] = [f"{answer.summary}.", *_counts(answer)]
    tables = (
        Table(
            ("POD", Column("PREEMPTION", wide=True), "REASON"),
            [
                (each.pod, each.preemption.node if each.preemption else "", each.reason)
                for each in answer.pending
            ],
            folds=True,
            title="Has no place then:",
        ),
        Table(
            ("POD", "NODE", "REASON", "MESSAGE"),
            [(each.pod, each.node, each.reason, each.message) for each in answer.blocked],
            folds=True,
            title="Cannot be drained:",
        ),
        Table(
            ("POD", "NODE"),
            [(each.pod, each.node) for each in answer.released],
            title="Is pending now, and gets a place:",
        ),
        Table(("POD", "NODE"), [(each.pod, each.node) for each in answer.placed], title="Is placed:"),
        Table(("POD",), [(each,) for each in answer.gone], title="Ends, and is not made again:"),
        Table(
            ("POLICY", Column("MOVES NOW", right=True), Column("THEN", right=True)),
            [(each.policy, len(each.before), len(each.after)) for each in answer.policies],
        ),
        Table(
            ("POLICY", "POD", "FROM", "TO", "STRATEGY"),
            [
                (policy.policy, move.pod, move.source_node, move.target_node, move.strategy)
                for policy in answer.policies
                for move in policy.after
            ],
            title="Moves then:",
        ),
        _use(answer),
    )
    for table in tables:
        view += ["", table if wide else table.first_rows()] if table.rows else []
    return [*view, *note_lines(answer.notes)]


def _counts(answer: WhatIfAnswer) -> list[str]:
    counts = (
        (len(answer.pending), "without a place then"),
        (answer.still_pending, "pending now and then"),
        (len(answer.released), "pending now and placed then"),
        (answer.fitting, "pending now and placed with or without it"),
        (len(answer.placed), "placed"),
        (len(answer.gone), "ending"),
        (len(answer.blocked), "not drained"),
    )
    said = [f"{count} {what}" for count, what in counts if count]
    return [f"Pods: {', '.join(said)}."] if said else []


def _use(answer: WhatIfAnswer) -> Table:
    columns = (
        "NODE",
        Column("CPU", right=True),
        Column("THEN", right=True),
        Column("MEMORY", right=True),
        Column("THEN", right=True),
        Column("PODS", right=True),
        Column("THEN", right=True),
        Column("CPU REQUESTS", wide=True),
        Column("MEMORY REQUESTS", wide=True),
    )
    total = NodeRequests(node="all nodes", before=answer.total_before, after=answer.total_after)
    rows = [_row(each) for each in (*answer.nodes, total)]
    return Table(columns, rows if answer.nodes else [], title="Requested share of what is allocatable:")


def _row(each: NodeRequests) -> tuple[object, ...]:
    old, new = each.before, each.after
    return (
        each.node,
        *(_share(use.cpu_milli, use.cpu_milli_allocatable) if use else "-" for use in (old, new)),
        *(_share(use.memory_bytes, use.memory_bytes_allocatable) if use else "-" for use in (old, new)),
        *(use.pods if use else "-" for use in (old, new)),
        f"{_milli(old)} → {_milli(new)}",
        f"{_mebi(old)} → {_mebi(new)}",
    )


def _share(requested: int, allocatable: int) -> str:
    return f"{requested * 100 // allocatable}%" if allocatable else "-"


def _milli(use: RequestedAmounts | None) -> str:
    return "-" if use is None else f"{use.cpu_milli}m"


def _mebi(use: RequestedAmounts | None) -> str:
    return "-" if use is None else f"{use.memory_bytes // _MIB}Mi"
