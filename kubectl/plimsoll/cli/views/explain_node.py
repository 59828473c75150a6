"""Lays out the answer of ``plimsoll explain node``."""

from plimsoll.cli.output import View
from plimsoll.cli.tables import Column, Table
from plimsoll.cli.views.explain_pod import room_lines, unknown_lines
from plimsoll.cli.views.moved_pod import headed
from plimsoll.inspection.explanations.node import NodeExplanation, NodePolicyView, ResourceUse
from plimsoll.model.amounts import amount_text

#: Number of pods listed, those that a drain does not move first; ``-o wide`` lists all.
PODS = 20

#: What stops a drain comes first.
_FIRST = ("Blocked", "NoPlace")


def node_view(answer: NodeExplanation, *, wide: bool = False) -> View:
    """The summary, then tables; unknown facts come last."""
    view: list[Table | str] = [*headed(f"Node {answer.name}", answer.summary)]
    if answer.taints:
        view.append(f"taints: {', '.join(answer.taints)}")
    columns = (
        "RESOURCE",
        Column("ALLOCATABLE", right=True),
        Column("REQUESTED", right=True),
        Column("%", right=True),
        Column("USED", right=True),
        Column("%", right=True),
    )
    view += ["", Table(columns, [_use(each) for each in answer.use])]
    if answer.policies:
        policies = [(each.policy, each.mode, _classes(each), _plans(each)) for each in answer.policies]
        view += ["", Table(("POLICY", "MODE", "CLASS", "NEXT RUN"), policies, folds=True)]
    if answer.pods:
        found = sorted(answer.pods, key=lambda each: each.outcome not in _FIRST)
        shown = found if wide else found[:PODS]
        left = len(found) - len(shown)
        title = f"{len(shown)} of {len(found)} pods; -o wide lists all:" if left else ""
        pods = [(each.pod, each.outcome, each.text) for each in shown]
        columns_of_pods = ("POD", Column("DRAINED", status=True), "WHERE OR WHY")
        view += ["", Table(columns_of_pods, pods, folds=True, title=title)]
    protected = [(each.pod, each.protection) for each in answer.pods if each.protection]
    if protected:
        protected = protected if wide else protected[:PODS]
        view += ["", Table(("POD", "LEFT ALONE BY POLICIES"), protected, folds=True)]
    if answer.operator is not None:
        assumed = ", ".join(answer.operator.assumed) or "none"
        view += ["", f"Operator ({answer.operator.standing}):", f"  assumed pods: {assumed}"]
        view += room_lines(answer.operator.rooms)
    return [*view, *unknown_lines(answer.unknown)]


def _use(each: ResourceUse) -> tuple[object, ...]:
    return (
        each.resource,
        amount_text(each.resource, each.allocatable),
        amount_text(each.resource, each.requested),
        f"{each.requested_percent:g}",
        "" if each.used is None else amount_text(each.resource, each.used),
        "" if each.used_percent is None else f"{each.used_percent:g}",
    )


def _classes(each: NodePolicyView) -> str:
    return ", ".join(f"{name}: {found}" for name, found in each.classes.items())


def _plans(each: NodePolicyView) -> str:
    if each.problem:
        return each.problem
    said = []
    if each.leave:
        said.append(f"moves off {', '.join(each.leave)}")
    if each.arrive:
        said.append(f"moves here {', '.join(each.arrive)}")
    if each.stay:
        said.append("stay: " + ", ".join(f"{count} {reason}" for reason, count in each.stay.items()))
    return "; ".join([*(said or ["moves nothing"]), *each.remarks])
