"""Writes reports: answers of commands as a web page in one file (``--report FILE``)."""

import re
import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from plimsoll.cli.output import View
from plimsoll.cli.tables import Column, Table
from plimsoll.commands.errors import UserError
from plimsoll.commands.parameters import Option
from plimsoll.commands.printable import printable
from plimsoll.model.counted import counted

if TYPE_CHECKING:
    from plimsoll.inspection.changes.what_if_answer import RequestedAmounts, WhatIfAnswer
    from plimsoll.inspection.history.answer import History
    from plimsoll.inspection.picture import ClusterPicture, PicturedNode
    from plimsoll.inspection.plans.answer import Plan, PolicyPlan
    from plimsoll.inspection.state import ClusterState
    from plimsoll.simulation.report import ReplayReport
    from plimsoll.web_pages.heat_map import Changes
    from plimsoll.web_pages.report import Report, ReportSection, ReportTable

#: The option of commands that can write a report.
ReportFile = Annotated[
    Path | None,
    Option("--report", metavar="FILE", help="Write the answer as a page, too: HTML, in one file."),
]

#: Number of pods whose explanation is in the page; for other pods the page gives the command.
EXPLAINED = 200


def write_report(path: Path, report: "Report") -> None:
    """Write the page, and report so on stderr.

    Raises:
        UserError: The file cannot be written.
    """
    try:
        path.write_text(report.html(), encoding="utf-8")
    except OSError as exc:
        raise UserError(f"--report: {path} cannot be written: {exc.strerror}; name another file") from exc
    sys.stderr.write(f"wrote {path} ({path.stat().st_size / 1024:.0f} KiB)\n")


def plan_report(answer: "Plan", state: "ClusterState") -> "Report":
    """The page of ``plimsoll plan``: the cluster, each policy, and the pending pods."""
    from plimsoll.cli.views.plan import comparison_view, policy_view  # noqa: PLC0415 - for pages alone
    from plimsoll.inspection.picture import picture_of  # noqa: PLC0415 - likewise
    from plimsoll.web_pages.heat_map import heat_maps  # noqa: PLC0415 - likewise
    from plimsoll.web_pages.move_arrows import move_arrows  # noqa: PLC0415 - likewise
    from plimsoll.web_pages.pod_index import pod_index  # noqa: PLC0415 - likewise
    from plimsoll.web_pages.report import Report, ReportSection  # noqa: PLC0415 - likewise

    picture = picture_of(state)
    sections = [
        ReportSection(
            f"Policy {plan.policy}",
            _body([*policy_view(plan, wide=True)]),
            maps=heat_maps(picture, _changes(plan)) if plan.moves else (),
            arrows=move_arrows((each.source_node, each.target_node or "?") for each in plan.moves),
        )
        for plan in sorted(answer.policies, key=lambda each: not each.moves)
    ]
    if answer.comparison is not None:
        sections.append(ReportSection("Comparison", _body([*comparison_view(answer.comparison)])))
    if not answer.moves:
        sections.insert(0, ReportSection("Cluster", ["The cluster as it is."], maps=heat_maps(picture, {})))
    moved = [each.pod for plan in answer.policies for each in plan.moves]
    return Report(
        title="What policies would move",
        source=_source(answer.source),
        taken=f"{answer.taken:%Y-%m-%dT%H:%M:%SZ}",
        command=_command(),
        sections=[
            *sections,
            *_by_domain(state),
            *_waiting(picture),
        ],
        explanations=_explanations(state, picture, moved),
        verdict=_planned(answer),
        figures=_plan_figures(answer, picture),
        pods=pod_index(
            state, answer.policies, {node.node for each in answer.policies for node in each.nodes}
        ),
    )


def what_if_report(answer: "WhatIfAnswer", state: "ClusterState") -> "Report":
    """The page of ``plimsoll whatif``: the cluster before and after the changes."""
    from plimsoll.cli.views.whatif import what_if_view  # noqa: PLC0415 - for pages alone
    from plimsoll.inspection.picture import picture_of  # noqa: PLC0415 - likewise
    from plimsoll.planning.imbalance import COLUMNS  # noqa: PLC0415 - likewise
    from plimsoll.web_pages.heat_map import heat_maps  # noqa: PLC0415 - likewise
    from plimsoll.web_pages.pod_index import pod_index  # noqa: PLC0415 - likewise
    from plimsoll.web_pages.report import Report, ReportSection  # noqa: PLC0415 - likewise

    picture = picture_of(state)
    told = [(resource, "requests") for resource in COLUMNS]
    return Report(
        title="What changes if the cluster changes",
        source=_source(state.content.source),
        taken=f"{state.time:%Y-%m-%dT%H:%M:%SZ}",
        command=_command(),
        sections=[
            ReportSection(
                "Result",
                _body(what_if_view(answer, wide=True)[1:]),
                maps=heat_maps(picture, _changed_nodes(answer), only=told),
            ),
            *_by_domain(state),
            *_waiting(picture),
        ],
        explanations=_explanations(state, picture, []),
        # A node's name, with which it may begin, keeps its small letter.
        verdict=f"{re.sub('^no pod', 'No pod', answer.summary)}.",
        figures=[
            ("pods that find a place", f"{len(answer.placed) + len(answer.released):,}"),
            ("pods without a place then", f"{len(answer.pending):,}"),
            ("pods that cannot be drained", f"{len(answer.blocked):,}"),
        ],
        pods=pod_index(state, (), {each.node for each in answer.nodes}),
    )


def replay_report(answer: "ReplayReport") -> "Report":
    """The page of ``plimsoll replay``: figures over time, a curve for each set of policies."""
    from plimsoll.cli.views.replay import refusal_tables, replay_view  # noqa: PLC0415 - for pages alone
    from plimsoll.web_pages.heat_map import replayed_maps  # noqa: PLC0415 - likewise
    from plimsoll.web_pages.report import PodsForReason, Report, ReportSection  # noqa: PLC0415 - likewise
    from plimsoll.web_pages.time_line import time_line  # noqa: PLC0415 - likewise

    figures: Sequence[tuple[str, Callable[..., float]]] = (
        ("cpu requested, %", lambda each: each.cpu_percent),
        ("memory requested, %", lambda each: each.memory_percent),
        ("pending pods", lambda each: each.pending),
        ("nodes in use", lambda each: each.nodes_in_use),
        ("evictions so far", lambda each: each.evicted),
    )
    lines = [
        time_line(
            title,
            [
                (outcome.label, [(each.at_seconds, figure(each)) for each in outcome.utilisation])
                for outcome in answer.outcomes
            ],
            least_top=100.0 if title.endswith("%") else 0.0,
        )
        for title, figure in figures
    ]
    pending = [
        ReportSection(
            f"Pending at the end, {outcome.label}: {outcome.pending_at_end}",
            waiting=[PodsForReason(each.reason, each.count, each.pods) for each in outcome.pending_reasons],
        )
        for outcome in answer.outcomes
        if outcome.pending_reasons
    ]
    return Report(
        title="What a replay came to",
        source=_source(answer.source),
        taken="",
        command=_command(),
        sections=[
            ReportSection("Result", _body(replay_view(answer, reasons=False)), lines=lines),
            *(
                ReportSection(
                    f"Nodes at the beginning and at the end, {outcome.label}",
                    maps=replayed_maps(outcome.nodes),
                )
                for outcome in answer.outcomes
            ),
            *_refused(list(refusal_tables(answer.outcomes))),
            *pending,
        ],
        explanations=_replayed(answer),
    )


def _replayed(answer: "ReplayReport") -> Mapping[str, str]:
    """Texts that a click opens: nodes, and pods pending at the end; each has a line per set of policies."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for outcome in answer.outcomes:
        for node in outcome.nodes:
            shares = ", ".join(
                f"{node.before_percent.get(name, 0):g} → {after:g} % of its {name}"
                for name, after in node.after_percent.items()
            )
            found[node.node].append(f"{outcome.label}: requested at the beginning and at the end: {shares}")
        for group in outcome.pending_reasons:
            for pod in group.pods:
                found[pod].append(f"{outcome.label}: pending at the end: {group.reason}")
    return {name: "\n".join(lines) for name, lines in found.items()}


def _refused(tables: Sequence[Table]) -> "list[ReportSection]":
    """A section with the reasons for which pods stayed in a replay; empty if none stayed."""
    from plimsoll.web_pages.report import ReportSection  # noqa: PLC0415 - for pages alone

    lead = (
        "Pods that strategies want moved and that stay, by reason: in how many runs, how often, how many "
        "different pods, and how many a run at the end would refuse. A pod counts once a run."
    )
    return [ReportSection("Moves that were refused", [lead, *_body(tables)])] if tables else []


def history_report(answer: "History") -> "Report":
    """The page of ``plimsoll history``: arrows between nodes, and all tables."""
    from plimsoll.cli.views.history import BAD, history_view  # noqa: PLC0415 - for pages alone
    from plimsoll.inspection.history.answer import PastMoveOutcome  # noqa: PLC0415 - likewise
    from plimsoll.web_pages.move_arrows import move_arrows  # noqa: PLC0415 - likewise
    from plimsoll.web_pages.report import Report, ReportSection  # noqa: PLC0415 - likewise

    verdict, *tables = history_view(answer, wide=True)
    nothing = "Nothing to show here. plimsoll plan shows what policies would move now, and why pods stay."
    ended_well = sum(each.outcome is PastMoveOutcome.SETTLED for each in answer.moves)
    ended_badly = sum(each.outcome in BAD for each in answer.moves)
    landed = [(each.source_node, each.landed_node) for each in answer.moves if each.landed_node is not None]
    return Report(
        title="What moved",
        source=_source(answer.source),
        taken=f"until {answer.until:%Y-%m-%dT%H:%M:%SZ}",
        command=_command(),
        verdict=str(verdict),
        figures=[
            ("moves", f"{len(answer.moves):,}"),
            ("ended well", f"{ended_well:,}"),
            ("returned, failed or blocked", f"{ended_badly:,}"),
            *_totals(answer),
        ]
        if answer.moves
        else [],
        sections=[ReportSection("Moves", _body(tables or [nothing], wide=False), arrows=move_arrows(landed))],
        explanations={each.pod: each.message for each in answer.moves if each.message},
    )


def _totals(answer: "History") -> Iterator[tuple[str, str]]:
    """Figures of a page about a month: what the moves cost, and what they brought."""
    totals = answer.totals
    yield "pods restarted", f"{totals.restarts:,}"
    yield "minutes below replicas", f"{totals.seconds_below_replicas / 60:,.1f}"
    yield "nodes freed", f"{totals.nodes_freed:,}"
    for name, amount in totals.saved_at_most.items():
        yield f"{name} saved at most", f"{amount:,.2f}"
    if totals.nodes_drained:
        yield "nodes drained on request", f"{totals.nodes_drained:,}"
    if answer.forecasts:
        yield "forecasts that came true", f"{answer.forecasts_hit:,} of {answer.forecasts:,}"


def _command() -> str:
    """The command, without what is of this machine alone: folders, and the options that name a server."""
    words = iter(sys.argv[1:])
    kept = [Path(sys.argv[0]).name]
    for word in words:
        flag, equals, value = word.partition("=")
        if flag in _OF_THIS_MACHINE:
            if not equals:
                next(words, None)
        elif equals and flag.startswith("--"):
            kept.append(f"{flag}={_without_folder(value)}")
        else:
            kept.append(_without_folder(word))
    return printable(shlex.join(kept))


#: Options with a value that says nothing to readers of a page.
_OF_THIS_MACHINE = {"--kubeconfig", "--context", "--operator", "--report"}


def _without_folder(word: str) -> str:
    """The name of an existing file; any other word as it is."""
    return Path(word).name if "/" in word and Path(word).exists() else word


def _source(source: str) -> str:
    """Where an answer was read, without the address of a server and the folder of a file."""
    if re.match(r"\w+://", source):
        return "a live cluster"
    name, more, rest = source.partition(" and ")
    return f"{Path(name).name}{more}{rest}"


def _planned(answer: "Plan") -> str:
    """The moves of the policies in a sentence."""
    moving = [each for each in answer.policies if each.moves]
    if not moving:
        return f"No pod would be moved now by {counted(len(answer.policies), 'policy', 'policies')}."
    nodes = {move.source_node for each in moving for move in each.moves}
    names = ", ".join(f"{each.policy} ({each.mode})" for each in moving)
    return f"{counted(answer.moves, 'pod')} would move off {counted(len(nodes), 'node')}, by {names}."


def _plan_figures(answer: "Plan", picture: "ClusterPicture") -> list[tuple[str, str]]:
    """Moves, what they are good for, and what keeps more pods where they are, or pods that wait."""
    found = [("moves", f"{answer.moves:,}")]
    spread = [each for plan in answer.policies if plan.moves for each in plan.spread]
    if spread:
        first = spread[0]
        title = f"imbalance of {first.resource}, points: before → after"
        found.append((title, f"{first.before:g} → {first.after:g}"))
    else:
        found.append(("pods without a place", f"{sum(len(each.pods) for each in picture.waiting):,}"))
    held = sum(each.pods for plan in answer.policies for each in plan.refused)
    return [*found, ("pods held back", f"{held:,}")]


def _body(view: View, *, wide: bool = True) -> "list[ReportTable | str]":
    return [part if isinstance(part, str) else _table(part, wide=wide) for part in view]


def _table(table: Table, *, wide: bool = True) -> "ReportTable":
    """The table without its empty columns, and without those that are for ``-o wide`` unless ``wide``."""
    from plimsoll.web_pages.report import ReportTable  # noqa: PLC0415 - for pages alone

    columns = [each if isinstance(each, Column) else Column(each) for each in table.columns]
    rows = [["" if cell is None else printable(str(cell)) for cell in row] for row in table.rows]
    kept = [
        place
        for place, column in enumerate(columns)
        if (wide or not column.wide) and any(row[place] for row in rows)
    ]
    return ReportTable(
        title=table.title.rstrip(":"),
        headings=[columns[place].heading for place in kept],
        numeric=frozenset(shown for shown, place in enumerate(kept) if columns[place].right),
        rows=[[row[place] for place in kept] for row in rows],
        states=frozenset(shown for shown, place in enumerate(kept) if columns[place].status),
    )


def _changes(plan: "PolicyPlan") -> "Changes":
    return {
        node.node: {(each.resource, each.usage): each.after_percent for each in node.changes}
        for node in plan.nodes
    }


def _changed_nodes(answer: "WhatIfAnswer") -> "Changes":
    found: dict[str, dict[tuple[str, str], float | None]] = {}
    for node in answer.nodes:
        found[node.node] = {(resource, "requests"): share for resource, share in _shares(node.after).items()}
        if node.after is None:
            found[node.node] = {(resource, "requests"): None for resource in _shares(node.before)}
    return found


def _shares(use: "RequestedAmounts | None") -> dict[str, float]:
    if use is None:
        return {}
    amounts = {
        "cpu": (use.cpu_milli, use.cpu_milli_allocatable),
        "memory": (use.memory_bytes, use.memory_bytes_allocatable),
        "pods": (use.pods, use.pods_allocatable),
    }
    return {name: round(100 * taken / room, 1) for name, (taken, room) in amounts.items() if room}


def _by_domain(state: "ClusterState") -> "list[ReportSection]":
    """Bars of racks with their groups, as the cluster is; empty without groups or racks."""
    from plimsoll.inspection.domain_loads import domain_loads  # noqa: PLC0415 - for pages alone
    from plimsoll.web_pages.rack_bars import rack_bars  # noqa: PLC0415 - likewise
    from plimsoll.web_pages.report import ReportSection  # noqa: PLC0415 - likewise

    bars = rack_bars(domain_loads(state))
    return [ReportSection("Groups by domain", racks=bars)] if bars else []


def _waiting(picture: "ClusterPicture") -> "list[ReportSection]":
    from plimsoll.web_pages.report import PodsForReason, ReportSection  # noqa: PLC0415 - for pages alone

    count = sum(len(each.pods) for each in picture.waiting)
    if not count:
        return []
    groups = [PodsForReason(each.reason, len(each.pods), each.pods) for each in picture.waiting]
    return [ReportSection(f"Pods without a place: {count}", waiting=groups)]


def _explanations(
    state: "ClusterState", picture: "ClusterPicture", moved: Iterable[str]
) -> Mapping[str, str]:
    """Texts that a click opens: nodes, moved pods, and pending pods."""
    found = {each.node: _node_text(each) for each in picture.nodes}
    for pod in [*dict.fromkeys(moved), *(each.pods[0] for each in picture.waiting)][:EXPLAINED]:
        found[pod] = _pod_text(state, pod)
    for group in picture.waiting:
        for pod in group.pods:
            found.setdefault(
                pod,
                f"waits for the same reason as {group.pods[0]}: {group.reason}\n\nplimsoll explain pod {pod}",
            )
    return found


def _pod_text(state: "ClusterState", pod: str) -> str:
    from plimsoll.cli.views.explain_pod import pod_view  # noqa: PLC0415 - for pages alone
    from plimsoll.inspection.explanations.pod import explain_pod  # noqa: PLC0415 - likewise

    namespace, _, name = pod.partition("/")
    return _text(pod_view(explain_pod(state, namespace, name)))


def _node_text(node: "PicturedNode") -> str:
    """The node's utilisation; the page lists its pods."""
    lines = [f"{node.state}, {counted(node.pods, 'pod')}"]
    for heading, shares in (("requested", node.requested_percent), ("used", node.used_percent)):
        if shares:
            lines.append(
                f"{heading}: " + ", ".join(f"{share} % of its {name}" for name, share in shares.items())
            )
    return "\n".join([*lines, "", f"plimsoll explain node {node.node}"])


def _text(view: View) -> str:
    lines: list[str] = []
    for part in view:
        lines += [part] if isinstance(part, str) else part.lines(wide=True)
    return "\n".join(lines)
