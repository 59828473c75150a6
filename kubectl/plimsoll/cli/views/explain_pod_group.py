"""Lays out the answer of ``plimsoll explain podgroup``."""

from plimsoll.cli.output import View
from plimsoll.cli.tables import Column, Table
from plimsoll.cli.views.explain_pod import unknown_lines
from plimsoll.inspection.explanations.pod_group import PodGroupExplanation


def pod_group_view(answer: PodGroupExplanation) -> View:
    """The summary, then tables of domains and members."""
    group = answer.group
    served = f"policy {answer.policy}" if answer.policy else "no policy serves it"
    counts = f"{group.present} members, of which it needs {group.min_member}; with a node: {group.placed}"
    view: list[Table | str] = [f"PodGroup {answer.namespace}/{answer.name} ({answer.api_group}): {counts}"]
    if answer.scheduler:
        view.append(f"Scheduler: {answer.scheduler} ({served})")
    if answer.required_topology:
        view.append(f"All members in one domain of {answer.required_topology}")
    if answer.preferred_topology:
        view.append(f"Members preferably in one domain of {', else '.join(answer.preferred_topology)}")
    view += ["", *answer.summary]
    if answer.domains:
        rows = [(each.label, each.value or "-", each.members, each.would) for each in answer.domains]
        columns = ("LABEL", "VALUE", Column("MEMBERS", right=True), Column("WOULD GO", right=True))
        view += ["", Table(columns, rows)]
    if answer.members:
        members = [(each.pod, each.phase, each.node or "-", each.would or "-") for each in answer.members]
        view += ["", Table(("MEMBER", "PHASE", "NODE", "WOULD GO TO"), members)]
    return [*view, *unknown_lines(answer.unknown)]
