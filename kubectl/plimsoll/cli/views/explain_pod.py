"""Lays out the answer of ``plimsoll explain pod``."""

from plimsoll.answers.operator_memory import PodMemory, RoomMemory
from plimsoll.cli.output import View
from plimsoll.cli.tables import Column, Table
from plimsoll.cli.views.moved_pod import headed, past_table
from plimsoll.inspection.explanations.past_moves import age_text
from plimsoll.inspection.explanations.pending_pod import PendingExplanation
from plimsoll.inspection.explanations.placed_pod import PlacedExplanation
from plimsoll.inspection.explanations.pod import PodExplanation
from plimsoll.inspection.explanations.waiting_pods import PendingOverview
from plimsoll.inspection.refusal_reasons import next_step
from plimsoll.model.counted import counted

#: Rows of pending pods; ``-o wide`` lists all.
KINDS = 20


def pod_view(answer: PodExplanation) -> View:
    """The summary, then tables; unknown facts come last."""
    where = f" on node {answer.node}" if answer.node else ""
    served = f"policy {answer.policy}" if answer.policy else "no policy serves it"
    facts = f"{answer.phase or 'Unknown'}{where}; scheduler {answer.scheduler} ({served})"
    view: list[Table | str] = [
        *headed(f"Pod {answer.namespace}/{answer.name}", answer.summary),
        "",
        f"{facts}, priority {answer.priority}",
    ]
    if answer.nominated_node:
        view.append(f"Nominated: node {answer.nominated_node} is held for it")
    if answer.group is not None:
        group = answer.group
        placed = f"{group.placed} of {group.min_member} needed members have a node"
        view += ["", f"PodGroup {group.name}: {placed}, {group.fitting} more fit together now"]
    if answer.pending is not None:
        view += _pending(answer.pending)
    if answer.placed is not None:
        view += _placed(answer.placed)
    if answer.operator is not None:
        view += ["", *_memory(answer.operator)]
    return [*view, *unknown_lines(answer.unknown)]


def waiting_view(answer: PendingOverview, *, wide: bool = False) -> View:
    """Pending pods by owner and reason, the longest waiting first."""
    columns = (
        "WORKLOAD",
        Column("PODS", right=True),
        "WAITS FOR",
        Column("AGE", right=True),
        Column("EXAMPLE", wide=True),
        "WHY",
    )
    rows = [
        (
            each.workload,
            each.pods,
            each.waits_for,
            "" if each.waited_seconds is None else age_text(each.waited_seconds),
            each.example,
            each.message,
        )
        for each in answer.kinds
    ]
    if not rows:
        return [answer.summary]
    shown = rows if wide else rows[:KINDS]
    left = f"{len(rows) - len(shown)} more rows; -o wide lists them" if len(rows) > len(shown) else ""
    next_one = f"next: plimsoll explain pod {answer.kinds[0].example}"
    return [answer.summary, "", Table(columns, shown, folds=True), "", *([left] if left else []), next_one]


def _memory(memory: PodMemory) -> list[str]:
    lines = [f"Operator ({memory.standing}):"]
    if memory.queue is None:
        lines.append("  not in its queue")
    else:
        queue = memory.queue
        said = f"  queue: {queue.queue}, attempts {queue.attempts}, for {age_text(queue.waited_seconds)}"
        said += f", {counted(queue.ahead, 'pod')} before it" if queue.queue == "active" else ""
        said += f", back-off {queue.backoff_seconds}s" if queue.backoff_seconds else ""
        lines.append(said)
        if queue.rejected_by:
            lines.append(f"  waits for events of {', '.join(queue.rejected_by)}")
        if queue.gated_by:
            lines.append(f"  held by {queue.gated_by}")
    if memory.assumed:
        lines.append(f"  assumed on node {memory.assumed}")
    return [*lines, *room_lines([memory.room] if memory.room else [])]


def room_lines(rooms: list[RoomMemory]) -> list[str]:
    """Lines about room that the operator has reserved."""
    return [
        f"  {each.node} is held for {each.pod} ({each.reason}, {each.owner or 'no owner'})"
        + (f" for {each.seconds_left}s" if each.seconds_left is not None else "")
        for each in rooms
    ]


def unknown_lines(unknown: list[str]) -> list[str]:
    """Lines about facts that the answer cannot know."""
    return ["", *(f"Not known here: {each}" for each in unknown)] if unknown else []


def _pending(pending: PendingExplanation) -> View:
    view: list[Table | str] = []
    if pending.plugins:
        rows = [(each.plugin, each.nodes, each.reason) for each in pending.plugins]
        view += ["", Table(("PLUGIN", Column("NODES", right=True), "REFUSES THEM FOR"), rows, folds=True)]
    if pending.groups:
        columns = (Column("NODES", right=True), "FOR EXAMPLE", Column("POOL", wide=True), "ALL REASONS")
        groups = [
            (each.nodes, ",".join(each.examples), each.pool, "; ".join(each.reasons))
            for each in pending.groups
        ]
        view += ["", Table(columns, groups, folds=True)]
    if pending.nearest:
        nearest = [(each.node, each.text.removeprefix(f"{each.node} ")) for each in pending.nearest]
        view += ["", Table(("NEAREST MISS", "BECAUSE IT"), nearest, folds=True)]
    if pending.helps:
        helps = [(each.node, each.text) for each in pending.helps]
        view += ["", Table(("FITS ON", "WITH"), helps, folds=True)]
    if pending.preemption is not None:
        preemption = pending.preemption
        said = (
            f"would clear {preemption.node} of {', '.join(preemption.victims)}"
            if preemption.node
            else preemption.message or "no plugin of the profile preempts"
        )
        view += ["", f"Preemption: {said}"]
    if pending.wakes:
        wakes = [(each.plugin, " ".join(each.events)) for each in pending.wakes]
        view += ["", Table(("REFUSED BY", "WOKEN BY"), wakes, folds=True)]
    return view


def _placed(placed: PlacedExplanation) -> View:
    view: list[Table | str] = []
    scored = [each for each in placed.scores if each.total is not None]
    if scored:
        names = [f"{each.node} (own)" if each.is_own else each.node for each in scored]
        rows = [
            (plugin.plugin, *(each.plugins[at].points for each in scored))
            for at, plugin in enumerate(scored[0].plugins)
        ]
        rows.append(("total", *(each.total for each in scored)))
        points: tuple[Column | str, ...] = ("SCORE", *(Column(name, right=True) for name in names))
        view += ["", Table(points, rows)]
    loads = [(each.node, each.load) for each in placed.scores if each.load]
    if loads:
        view += ["", Table(("NODE", "LOAD WITH THE POD"), loads, folds=True)]
    if placed.policies:
        policies = [(each.policy, each.mode, each.outcome, each.text) for each in placed.policies]
        view += ["", Table(("POLICY", "MODE", "OUTCOME", "NEXT RUN"), policies, folds=True)]
    holds = [(each.policy, hold.reason, hold.message) for each in placed.policies for hold in each.holds]
    if holds:
        view += ["", Table(("POLICY", "HELD BY", "WHY"), holds, folds=True)]
    if placed.budgets:
        heads = ("BUDGET", Column("ALLOWED", right=True), "HEALTHY")
        budgets = [
            (each.name, each.disruptions_allowed, f"{each.current_healthy}, {each.desired_healthy} needed")
            for each in placed.budgets
        ]
        view += ["", Table(heads, budgets)]
    if placed.past:
        view += ["", past_table(placed.past)]
    step = next_step(hold.reason for each in placed.policies for hold in each.holds)
    return [*view, "", step] if step else view
