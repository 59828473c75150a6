"""Lays out plans as tables."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from plimsoll.cli.tables import Column, Table
from plimsoll.inspection.plans.answer import (
    LimitAllowance,
    NodeChange,
    Plan,
    PlanComparison,
    PlannedMove,
    PolicyPlan,
    Presence,
    RefusalSummary,
    RefusedSubject,
    UsageChange,
)
from plimsoll.inspection.refusal_reasons import next_step
from plimsoll.model.counted import counted

#: Columns of a table of pods of one workload that stay for one reason.
SUBJECT_COLUMNS = (Column("PODS", right=True), "WORKLOAD", "STRATEGIES", "EXAMPLES", "SUCH AS")

#: Number of subjects listed in a row; ``-o wide`` has a row for each.
NAMED = 3

_PRESENCE = {
    Presence.ONLY_NEW: "only new",
    Presence.ONLY_OLD: "only old",
    Presence.BOTH: "both",
    Presence.ELSEWHERE: "elsewhere",
}


def plan_view(answer: Plan, *, wide: bool = False) -> list[Table | str]:
    """The plan of each policy; of two sets only the differences, unless ``wide``."""
    if not answer.policies:
        return ["no policies"]
    if answer.comparison is not None and not wide:
        new = [f"new {each.policy}: {each.outlook}" for each in answer.policies]
        old = [f"old {each.policy}: {each.outlook}" for each in answer.comparison.old]
        return [*new, *old, "", *comparison_view(answer.comparison)]
    view: list[Table | str] = [_headline(answer)] if len(answer.policies) > 1 else []
    for each in answer.policies:
        view += [*([""] if view else []), *policy_view(each, wide=wide)]
    if answer.comparison is not None:
        view += ["", *comparison_view(answer.comparison)]
    return view


def _headline(answer: Plan) -> str:
    """Which of several policies move how many pods."""
    moving = [f"{each.policy} {len(each.moves)} (mode {each.mode})" for each in answer.policies if each.moves]
    if not moving:
        return f"none of {len(answer.policies)} policies would move a pod now"
    return f"{counted(answer.moves, 'move')} now: {', '.join(moving)}"


def policy_view(plan: PolicyPlan, *, wide: bool) -> Iterator[Table | str]:
    """The moves of one policy, and why no more."""
    yield f"{plan.policy}: {plan.outlook}"
    yield from (f"  {note}" for note in plan.notes)
    tables = []
    if plan.moves:
        tables.append(_moves(plan.moves))
    if plan.refused:
        tables.append(_refusals_by_subject(plan.refused) if wide else _refusals(plan.refused))
    if plan.planned and (plan.moves or wide):
        tables.append(_nodes(plan))
        tables.append(_limits(plan.limits, wide=wide))
    if plan.budgets:
        tables.append(_budgets(plan))
    for table in tables:
        yield ""
        yield table
    if step := next_step(each.reason for each in plan.refused):
        yield ""
        yield step


def _moves(moves: Iterable[PlannedMove]) -> Table:
    columns = (
        Column("#", right=True),
        "POD",
        "FROM",
        "TO",
        "STRATEGY",
        "GAIN",
        Column("WORKLOAD", wide=True),
        Column("LEAVES BY", wide=True),
        Column("TIES", wide=True, right=True),
        Column("BUDGET", wide=True),
        Column("BUNDLE", wide=True),
        "REASON",
    )
    rows = [
        (
            move.position,
            move.pod,
            move.source_node,
            move.target_node,
            move.strategy,
            gain_of(move.gain, move.gain_maximum),
            move.workload,
            move.leaves_by,
            move.ties,
            move.budget,
            move.bundle,
            _reason(move),
        )
        for move in moves
    ]
    return Table(columns, rows, folds=True)


def gain_of(gain: int | None, maximum: int | None) -> str:
    """A gain as a share of the maximum, "" if nothing was compared."""
    if gain is None:
        return ""
    return f"{gain:+}" if maximum is None else f"{gain:+} of {maximum}"


def _reason(move: PlannedMove) -> str:
    """The reason of a move, and its special properties."""
    extras = [
        f"makes room for {move.beneficiary}" if move.beneficiary else "",
        "replacement first" if move.leaves_by == "Surge" else "",
        f"evicted, as {move.no_surge}" if move.no_surge else "",
        "a forecast" if move.forecast else "",
    ]
    return "; ".join([move.reason, *filter(None, extras)])


def _refusals(groups: Iterable[RefusalSummary]) -> Table:
    rows = [
        (
            group.reason,
            group.pods,
            _few([f"{each.subject} ({each.pods})" for each in group.subjects]),
            group.message,
        )
        for group in groups
    ]
    return Table(("STAYS FOR", Column("PODS", right=True), "WORKLOADS", "SUCH AS"), rows, folds=True)


def _refusals_by_subject(groups: Iterable[RefusalSummary]) -> Table:
    rows = [(group.reason, *subject_cells(each)) for group in groups for each in group.subjects]
    return Table(("STAYS FOR", *SUBJECT_COLUMNS), rows, folds=True)


def subject_cells(subject: RefusedSubject) -> tuple[object, ...]:
    """The pods of one workload that stay for one reason, under :data:`SUBJECT_COLUMNS`."""
    named = ", ".join(subject.strategies), ", ".join(subject.examples)
    return (subject.pods, subject.subject, *named, subject.message)


def _nodes(plan: PolicyPlan) -> Table:
    """Utilisation before and after; the last row has the spread over all nodes."""
    kinds = list(dict.fromkeys((each.resource, each.usage) for each in plan.spread))
    columns: tuple[Column | str, ...] = (
        "NODE",
        Column("OUT", right=True),
        Column("IN", right=True),
        *map(_heading, kinds),
    )
    rows: list[Sequence[object]] = [
        (node.node, node.leave, node.arrive, *(_change(node, kind) for kind in kinds)) for node in plan.nodes
    ]
    spread = {(each.resource, each.usage): f"{each.before} → {each.after}" for each in plan.spread}
    totals = (sum(each.leave for each in plan.nodes), sum(each.arrive for each in plan.nodes))
    rows.append(("(standard deviation)", *totals, *(spread[kind] for kind in kinds)))
    return Table(columns, rows)


def _heading(kind: tuple[str, str]) -> str:
    resource, usage = kind
    return f"{resource.upper()} %" if usage == "requests" else f"{resource.upper()} % USED"


def _change(node: NodeChange, kind: tuple[str, str]) -> str:
    found: UsageChange | None = next(
        (each for each in node.changes if (each.resource, each.usage) == kind), None
    )
    return "" if found is None else f"{found.before_percent} → {found.after_percent}"


def _limits(limits: Iterable[LimitAllowance], *, wide: bool) -> Table:
    """The limits of the run; per node, namespace or workload only exhausted ones, or all if ``wide``."""
    columns: tuple[Column | str, ...] = (
        "LIMIT",
        "OF",
        *(Column(each, right=True) for each in ("ALLOWED", "USED", "LEFT")),
    )
    rows: list[Sequence[object]] = []
    full: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for each in limits:
        if wide or each.subject is None or each.limit == "budgets":
            rows.append((each.limit, each.subject or "the run", each.allowed, each.used, each.left))
        elif not each.left:
            full[each.limit, each.allowed].append(each.subject)
    for (limit, allowed), subjects in full.items():
        rows.append((limit, _few(subjects), allowed, allowed, 0))
    return Table(columns, rows)


def _budgets(plan: PolicyPlan) -> Table:
    headings = ("ALLOWED", "USED", "LEFT", "STAY FOR IT")
    columns: tuple[Column | str, ...] = (
        "PODDISRUPTIONBUDGET",
        *(Column(each, right=True) for each in headings),
    )
    rows = [(each.budget, each.allowed, each.used, each.left, each.refused) for each in plan.budgets]
    return Table(columns, rows)


def comparison_view(found: PlanComparison) -> Iterator[Table | str]:
    """The differences between the moves of two sets of policies."""
    yield (
        f"against {found.against}: {found.only_new} only new, {found.only_old} only old, {found.both} both,"
        f" {found.elsewhere} to another node"
    )
    if found.moves:
        columns = ("MOVED BY", "POD", "FROM", "NEW TO", "OLD TO", "NEW POLICY", "OLD POLICY")
        rows = [
            (
                _PRESENCE[each.presence],
                each.pod,
                each.source_node,
                each.new_target_node,
                each.old_target_node,
                each.new_policy,
                each.old_policy,
            )
            for each in found.moves
        ]
        yield ""
        yield Table(columns, rows)


def _few(names: Sequence[str]) -> str:
    """The first names, and the number of further ones."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f", and {more} more" if more > 0 else "")
