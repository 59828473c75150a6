"""Lays out what the records say of a pod that was moved."""

from plimsoll.cli.output import View
from plimsoll.cli.tables import Column, Table
from plimsoll.inspection.explanations.moved_pod import MoveExplanation
from plimsoll.inspection.explanations.past_moves import PastMoveOfOwner, age_text


def headed(subject: str, summary: list[str]) -> list[str]:
    """The sentences of a summary; the first one, with its subject, is the first line of the answer."""
    first, *others = summary or ["nothing is known of it"]
    return [f"{subject}: {first}", *others]


def moved_view(answer: MoveExplanation) -> View:
    """The summary, and the records."""
    subject = f"{answer.subject[:1].upper()}{answer.subject[1:]}"
    return [*headed(subject, answer.summary), "", past_table(answer.past)]


def past_table(moves: list[PastMoveOfOwner]) -> Table:
    """A row for each move."""
    titles = (
        Column("RECORD", wide=True),
        "POD",
        "FROM",
        "TO",
        "STRATEGY",
        Column("PHASE", status=True),
        Column("AGE", right=True),
        "REASON",
    )
    rows = [
        (
            each.record,
            each.pod,
            each.source_node,
            each.landed_node or each.target_node,
            each.strategy,
            each.phase,
            age_text(each.age_seconds),
            each.reason,
        )
        for each in moves
    ]
    return Table(titles, rows, folds=True)
