"""Lays out the answer of ``plimsoll explain policy``."""

from plimsoll.cli.output import View
from plimsoll.cli.tables import Table
from plimsoll.cli.views.moved_pod import headed
from plimsoll.inspection.explanations.policy import PolicyExplanation


def explained_policy(answer: PolicyExplanation) -> View:
    """The summary, and the conditions."""
    view: list[Table | str] = [*headed(f"Policy {answer.name}", answer.summary)]
    if answer.conditions:
        columns = ("CONDITION", "STATUS", "REASON", "MESSAGE")
        rows = [(each.type, each.status, each.reason, each.message) for each in answer.conditions]
        view += ["", Table(columns, rows, folds=True)]
    return [*view, "", f"next: plimsoll plan {answer.name} shows each move, and why pods stay"]
