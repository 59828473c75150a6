"""Lays out a history of moves as tables."""

from collections.abc import Iterable
from datetime import datetime

from plimsoll.cli.tables import Column, Table
from plimsoll.cli.views.plan import gain_of
from plimsoll.inspection.history.answer import (
    History,
    MovedAgain,
    MoveDigest,
    OwnerMoves,
    PastMoveOutcome,
    RecordedMove,
)
from plimsoll.model.counted import counted
from plimsoll.model.quantity import units

#: Number of owners listed; ``-o wide`` lists all.
OWNERS = 10

#: Outcomes that have a table of their own, with the reason.
BAD = (PastMoveOutcome.RETURNED, PastMoveOutcome.FAILED, PastMoveOutcome.BLOCKED)


def history_view(answer: History, *, wide: bool = False) -> list[Table | str]:
    """Tables of moves, failures, repeats, moves by load and owners, and a digest."""
    if not answer.moves:
        since = "" if answer.since is None else f" since {_time(answer.since)}"
        dry = f"; {_dry_runs(answer.predictions)} moved nothing" if answer.predictions else ""
        where, hint = "", ""
        if answer.namespace:
            where = f" in namespace {answer.namespace}"
            hint = "; -A looks in all namespaces"
        subject = f" of {answer.subject[:1].lower()}{answer.subject[1:]}" if answer.subject else ""
        return [f"no moves{subject}{where}{since}{dry}{hint}"]
    tables = [_moves(answer.moves)]
    bad = [move for move in answer.moves if move.outcome in BAD]
    if bad:
        tables.append(_bad(bad))
    if answer.moved_again:
        tables.append(_again(answer.moved_again, answer.again_within_seconds))
    if any(move.load for move in answer.moves):
        tables.append(_loads(answer.moves))
    if answer.owners:
        tables.append(_owners(answer.owners if wide else answer.owners[:OWNERS], len(answer.owners)))
    tables.append(_digest(answer.digest))
    view: list[Table | str] = []
    for table in tables:
        view += ["", table]
    if answer.forecasts:
        placed = f"{counted(answer.forecasts, 'replacement')} that other schedulers placed"
        landed = f"{answer.forecasts_hit} on the expected node, or on one as good"
        view += ["", f"forecasts: of {placed}, {landed}"]
    if answer.predictions:
        view += ["", f"left out: {_dry_runs(answer.predictions)}, which moved nothing"]
    return view[1:]


def _dry_runs(count: int) -> str:
    return f"{counted(count, 'record')} of dry runs"


def _moves(moves: Iterable[RecordedMove]) -> Table:
    columns = (
        "PLANNED",
        "POD",
        "FROM",
        "TO",
        "OUTCOME",
        Column("TOOK", right=True),
        "STRATEGY",
        "POLICY",
        Column("WORKLOAD", wide=True),
        Column("EXPECTED ON", wide=True),
        Column("GAIN", wide=True),
        Column("RECORD", wide=True),
        "REASON",
    )
    rows = [
        (
            _time(move.planned),
            move.pod,
            move.source_node,
            move.landed_node or move.target_node,
            move.phase if move.outcome is PastMoveOutcome.OPEN else move.outcome,
            _seconds(move.seconds),
            move.strategy,
            move.policy,
            move.workload,
            move.target_node,
            gain_of(move.gain, move.gain_maximum),
            move.record,
            move.why,
        )
        for move in moves
    ]
    return Table(columns, rows, folds=True)


def _bad(moves: Iterable[RecordedMove]) -> Table:
    rows = [(move.outcome, move.pod, move.workload, move.reason, move.message) for move in moves]
    return Table(("ENDED", "POD", "WORKLOAD", "REASON", "MESSAGE"), rows, folds=True, title="ended badly:")


def _again(found: Iterable[MovedAgain], within_s: float) -> Table:
    columns = (
        "POD",
        Column("WORKLOAD", wide=True),
        Column("AFTER", right=True),
        "BACK",
        "FIRST RECORD",
        "SECOND RECORD",
    )
    rows = [
        (
            each.pod,
            each.workload,
            _seconds(each.seconds),
            "yes" if each.back else "no",
            each.first,
            each.second,
        )
        for each in found
    ]
    return Table(columns, rows, title=f"moved again within {_seconds(within_s)}:")


def _loads(moves: Iterable[RecordedMove]) -> Table:
    columns = (
        "POD",
        "RESOURCE",
        "FROM",
        "TO",
        Column("EXPECTED", right=True),
        "BASIS",
        Column("USED", right=True),
        Column("ERROR", right=True),
    )
    rows = [
        (
            move.pod,
            each.resource,
            f"{each.source_percent[0]:.0f}% -> {each.source_percent[1]:.0f}%",
            f"{each.target_percent[0]:.0f}% -> {each.target_percent[1]:.0f}%",
            _amount(each.resource, each.expected),
            each.basis,
            "" if each.used is None else _amount(each.resource, each.used),
            "" if each.error_percent is None else f"{each.error_percent:+.0f}%",
        )
        for move in moves
        for each in move.load
    ]
    return Table(columns, rows, title="moved by load (load of both nodes, use of the pod):")


def _amount(resource: str, quantity: str) -> str:
    """A quantity for people: memory in Mi."""
    return quantity if resource == "cpu" else f"{units(quantity) / 2**20:.0f}Mi"


def _owners(owners: Iterable[OwnerMoves], all_of_them: int) -> Table:
    shown = list(owners)
    rows = [(each.workload, each.moves, each.settled, _time(each.last)) for each in shown]
    columns = ("WORKLOAD", Column("MOVES", right=True), Column("SETTLED", right=True), "LAST")
    some = "" if len(shown) == all_of_them else f", {len(shown)} of {all_of_them}"
    return Table(columns, rows, title=f"most moved{some}:")


def _digest(groups: Iterable[MoveDigest]) -> Table:
    headings = ("MOVES", "SETTLED", "RETURNED", "FAILED", "BLOCKED", "CANCELLED", "OPEN", "P50", "P95")
    columns: tuple[Column | str, ...] = (
        "POLICY",
        "STRATEGY",
        *(Column(each, right=True) for each in headings),
    )
    rows = [
        (
            each.policy,
            each.strategy,
            each.moves,
            each.settled,
            each.returned,
            each.failed,
            each.blocked,
            each.cancelled,
            each.open,
            _seconds(each.p50_seconds),
            _seconds(each.p95_seconds),
        )
        for each in groups
    ]
    return Table(columns, rows, title="digest (P50 and P95: from planned or approved to settled):")


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _seconds(seconds: float | None) -> str:
    """Seconds formatted as kubectl formats ages: ``4s``, ``2m5s``, ``3h10m``."""
    if seconds is None:
        return ""
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole}s"
    if whole < 7200:
        minutes, rest = divmod(whole, 60)
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    hours, rest = divmod(whole // 60, 60)
    return f"{hours}h{rest}m" if rest else f"{hours}h"
