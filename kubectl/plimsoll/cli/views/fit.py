"""Lays out the answer of ``plimsoll fit``."""

from plimsoll.cli.output import View
from plimsoll.cli.tables import Column, Table
from plimsoll.inspection.placement.fit import FitAnswer, WorkloadFit
from plimsoll.inspection.placement.pod_obstacles import PodObstacle
from plimsoll.model.counted import agreeing, counted


def fit_view(answer: FitAnswer, *, wide: bool = False) -> View:
    """Tables of workloads and nodes, obstacles of the next pod, and notes; ``wide`` has all nodes."""
    view: list[Table | str] = [_headline(answer), "", _workloads(answer)]
    for each in answer.workloads:
        if each.nodes:
            rows = [(share.node, share.pods) for share in each.nodes]
            table = Table(("NODE", Column("PODS", right=True)), rows, title=_title(each, answer))
            view += ["", table if wide else table.first_rows()]
        if each.domains:
            columns = ("LABEL", "VALUE", Column("PODS", right=True))
            domains = [(share.label, share.value or "-", share.pods) for share in each.domains]
            view += ["", Table(columns, domains, title=_title(each, answer))]
        if each.victims:
            view += ["", f"{each.workload} preempts: {', '.join(each.victims)}"]
        if each.obstacle is not None and each.group:
            view += ["", f"{each.group} does not fit: {each.obstacle.reason}", _chance(each)]
        elif each.obstacle is not None:
            view += ["", *obstacle_lines(each.obstacle)]
        elif each.limited:
            tried = counted(each.placed, "pod")
            view += ["", f"{each.workload}: more may fit; the search ended at {tried}, see --most"]
    if answer.waiting:
        view += [
            "",
            f"Pods pending already that come first: {answer.waiting}, placed: {answer.waiting_placed}.",
        ]
    return [*view, *note_lines(answer.notes)]


def _headline(answer: FitAnswer) -> str:
    """How many pods of each workload fit."""
    said = []
    for each in answer.workloads:
        number = "at most " if each.wanted is None else f"{each.placed} of "
        wanted = each.placed if each.wanted is None else each.wanted
        said.append(
            f"{number}{counted(wanted, 'pod')} of {each.workload} {agreeing(each.placed, 'fits', 'fit')}"
        )
    return "; ".join(said)


def _chance(each: WorkloadFit) -> str:
    """Whether a group that does not fit can fit, and what would have to go."""
    if each.never:
        return f"It can never fit on the present nodes: {each.never}."
    if not each.would_preempt:
        return "Preemption would not help."
    victims = each.would_preempt
    return f"Preemption would evict {counted(len(victims), 'pod')}: {', '.join(victims)}."


def obstacle_lines(obstacle: PodObstacle) -> list[Table | str]:
    """The obstacles of a pod by plugin, and whether preemption would help."""
    lines: list[Table | str] = [f"{obstacle.pod} does not fit: {obstacle.reason}"]
    if obstacle.plugins:
        rows = [(each.plugin, each.nodes or "all", each.reason) for each in obstacle.plugins]
        lines.append(Table(("PLUGIN", Column("NODES", right=True), "REASON"), rows, folds=True))
    chance = obstacle.preemption
    if chance is None:
        lines.append("Preemption would not help.")
    else:
        lines.append(f"Preemption on node {chance.node} would evict {', '.join(chance.victims)}.")
    return lines


def note_lines(notes: list[str]) -> list[str]:
    """Lines about unknown and assumed facts."""
    return ["", *(f"note: {each}" for each in notes)] if notes else []


def _workloads(answer: FitAnswer) -> Table:
    columns = (
        "WORKLOAD",
        Column("FIT", right=True),
        Column("WANTED", right=True),
        Column("NODES", right=True),
        "SCHEDULER",
        Column("POLICY", wide=True),
        Column("PRIORITY", wide=True, right=True),
        Column("TIES", wide=True, right=True),
    )
    rows = [
        (
            each.workload,
            each.placed,
            "most" if each.wanted is None else each.wanted,
            len(each.nodes),
            each.scheduler,
            each.policy,
            each.priority,
            each.ties,
        )
        for each in answer.workloads
    ]
    return Table(columns, rows)


def _title(each: WorkloadFit, answer: FitAnswer) -> str:
    """The title of a table of nodes: names its workload unless that is obvious."""
    return f"{each.workload}:" if len(answer.workloads) > 1 else ""
