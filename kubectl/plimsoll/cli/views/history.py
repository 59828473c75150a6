"""Lays out a history of moves as tables."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.cli.tables import Column, Table
from plimsoll.cli.views.plan import gain_of
from plimsoll.inspection.explanations.past_moves import age_text
from plimsoll.inspection.history.answer import (
    History,
    HistoryTotals,
    MovedAgain,
    MoveDigest,
    OwnerMoves,
    PastMoveOutcome,
    RecordedMove,
)
from plimsoll.model.counted import agreeing, counted
from plimsoll.model.quantity import units

#: Number of owners and of moves listed; ``-o wide`` lists all.
OWNERS, MOVES = 10, 20

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
        subject = _of(answer.subject)
        return [f"no moves{subject}{where}{since}{dry}{hint}"]
    moves = answer.moves if wide else answer.moves[-MOVES:]
    tables = [_moves(moves, answer.until, len(answer.moves))]
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
    view: list[Table | str] = [_headline(answer)]
    waits = [wait for wait in map(_approved_after, answer.moves) if wait is not None]
    if waits:
        waited = agreeing(len(waits), "waited", "waited at most")
        longest = f"{waited} {_seconds(max(waits))} for approval"
        view.append(f"{counted(len(waits), 'move')} {longest}; TOOK counts from then on")
    if answer.totals.restarts and not answer.subject:
        view += ["", *totals_lines(answer.totals)]
    for table in tables:
        view += ["", table]
    if answer.forecasts:
        placed = f"{counted(answer.forecasts, 'replacement')} that other schedulers placed"
        landed = f"{answer.forecasts_hit} on the expected node, or on one as good"
        view += ["", f"forecasts: of {placed}, {landed}"]
    if answer.predictions:
        view += ["", f"left out: {_dry_runs(answer.predictions)}, which moved nothing"]
    return view


def totals_lines(totals: HistoryTotals) -> Iterator[str]:
    """What the moves came to, in sentences."""
    below, bad = _seconds(totals.seconds_below_replicas), counted(totals.failures, "move")
    yield f"restarts: {counted(totals.restarts, 'pod')}, {below} below replicas; {bad} failed or came back"
    if totals.nodes_freed:
        each = " and ".join(f"{amount:g} {name}" for name, amount in totals.freed_per_hour.items())
        until = " and ".join(f"{amount:g} {name}" for name, amount in totals.saved_at_most.items())
        money = f", {each} an hour: at most {until} until now, if they were removed" if each else ""
        yield f"freed: {counted(totals.nodes_freed, 'node')}{money}"
    if totals.nodes_drained:
        yield f"drained on request: {counted(totals.nodes_drained, 'node')}"


def _headline(answer: History) -> str:
    """How many moves there were, and how they ended."""
    if len(answer.moves) == 1:
        return _only(answer.moves[0], answer.until)
    counts = Counter(move.outcome for move in answer.moves)
    ended = ", ".join(f"{counts[each]} {each.lower()}" for each in PastMoveOutcome if counts[each])
    since = "" if answer.since is None else f" since {_time(answer.since)}"
    subject = _of(answer.subject)
    again = f"; {counted(len(answer.moved_again), 'pod')} moved again" if answer.moved_again else ""
    return f"{counted(len(answer.moves), 'move')}{subject}{since}: {ended}{again}"


def _only(move: RecordedMove, now: datetime) -> str:
    """The one move that there is."""
    target = move.landed_node or move.target_node
    way = f"{move.source_node} → {target}" if target else f"off {move.source_node}"
    state = move.phase if move.outcome is PastMoveOutcome.OPEN else move.outcome
    age = age_text(round((now - move.planned).total_seconds()))
    by = f"by policy {move.policy} ({move.strategy})"
    return f"{move.pod}: {way}, {age} ago, {by}: {move.why}; {state.lower()}"


def _approved_after(move: RecordedMove) -> float | None:
    """Seconds for which a move waited for its approval; None if it did not, or was not carried out."""
    if move.mode is not Mode.APPROVE or move.outcome is PastMoveOutcome.CANCELLED:
        return None
    if move.ended is None or move.seconds is None:
        return None
    return max((move.ended - move.planned).total_seconds() - move.seconds, 0.0)


def _of(subject: str) -> str:
    """Whose moves, "" for all."""
    return f" of {subject.replace('Pod ', 'pod ', 1)}" if subject else ""


def _dry_runs(count: int) -> str:
    return f"{counted(count, 'record')} of dry runs"


def _moves(moves: Sequence[RecordedMove], now: datetime, all_of_them: int) -> Table:
    columns = (
        "PLANNED",
        Column("AGE", right=True),
        "POD",
        "FROM",
        "TO",
        Column("OUTCOME", status=True),
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
            age_text(round((now - move.planned).total_seconds())),
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
    earlier = all_of_them - len(moves)
    title = f"the last {len(moves)} moves ({earlier} earlier ones are listed by -o wide):" if earlier else ""
    return Table(columns, rows, folds=True, title=title)


def _bad(moves: Iterable[RecordedMove]) -> Table:
    rows = [(move.outcome, move.pod, move.workload, move.reason, move.message) for move in moves]
    return Table(
        (Column("ENDED", status=True), "POD", "WORKLOAD", "REASON", "MESSAGE"),
        rows,
        folds=True,
        title="ended badly:",
    )


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
            f"{each.source_percent[0]:.0f}% → {each.source_percent[1]:.0f}%",
            f"{each.target_percent[0]:.0f}% → {each.target_percent[1]:.0f}%",
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
