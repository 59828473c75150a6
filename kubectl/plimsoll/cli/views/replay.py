"""Lays out the outcome of a replay: figures of each set of policies, strategies, and reasons of refusals."""

from collections.abc import Iterable, Iterator

from plimsoll.cli.output import View
from plimsoll.cli.tables import Column, Table
from plimsoll.cli.views.plan import SUBJECT_COLUMNS, subject_cells
from plimsoll.simulation.report import PolicySetOutcome, RefusedMoves, ReplayReport

#: Number of workloads listed in a row.
NAMED = 3


def replay_view(report: ReplayReport, *, wide: bool, reasons: bool = True) -> View:
    """The tables of a report; ``reasons`` adds why pods stay or are pending.

    ``wide`` adds budgets and limits, the utilisation over time, and refusals by workload.
    """
    outcomes = report.outcomes
    rows = [[_figures(each)[row][1] for each in outcomes] for row in range(len(_figures(outcomes[0])))]
    names = [name for name, _ in _figures(outcomes[0])]
    columns: list[Column | str] = ["FIGURE", *(Column(each.label.upper(), right=True) for each in outcomes)]
    view: list[Table | str] = [
        f"Replayed {_duration(report.seconds)} of {report.source}, seed {report.seed}",
        "",
        Table(columns, [(name, *row) for name, row in zip(names, rows, strict=True)]),
    ]
    strategies = [
        (
            each.label,
            found.policy,
            found.strategy,
            found.evictions,
            found.predicted,
            found.violations,
            found.violations_at_end,
        )
        for each in outcomes
        for found in each.strategies
    ]
    if strategies:
        numbers = ("EVICTIONS", "PREDICTED", "VIOLATIONS", "AT END")
        heads: tuple[Column | str, ...] = (
            "POLICIES",
            "POLICY",
            "STRATEGY",
            *(Column(each, right=True) for each in numbers),
        )
        view += ["", Table(heads, strategies)]
    if reasons:
        for table in refusal_tables(outcomes, wide=wide):
            view += ["", table]
    pending = [
        (each.label, found.count, found.pods[0], found.reason)
        for each in outcomes
        for found in each.pending_reasons
    ]
    if pending and reasons:
        columns = ["POLICIES", Column("PENDING AT THE END", right=True), "SUCH AS", "REASON"]
        view += ["", Table(columns, pending, folds=True)]
    if wide:
        for table in _allowances(outcomes):
            view += ["", table]
        for each in outcomes:
            view += ["", *_utilisation(each)]
    for each in outcomes:
        view += [f"{each.label}: {problem}" for problem in each.problems]
    return view


def refusal_tables(outcomes: Iterable[PolicySetOutcome], *, wide: bool) -> Iterator[Table]:
    """The reasons for which pods stay though strategies would move them; ``wide`` adds counts by workload."""
    found = [(outcome.label, each) for outcome in outcomes for each in outcome.refused]
    if not found:
        return
    heads: tuple[Column | str, ...] = (
        "POLICIES",
        "POLICY",
        "STAYS FOR",
        Column("RUNS", right=True),
        Column("REFUSALS", right=True),
        Column("PODS", right=True),
        Column("AT END", right=True),
        Column("WORKLOADS", wide=True),
        "SUCH AS",
    )
    rows = [
        (
            label,
            each.policy,
            each.reason,
            each.runs,
            each.refusals,
            each.pods,
            each.at_end,
            _workloads(each),
            each.message,
        )
        for label, each in found
    ]
    yield Table(heads, rows, folds=True)
    if wide:
        by_workload = [
            (label, each.policy, each.reason, *subject_cells(subject))
            for label, each in found
            for subject in each.subjects
        ]
        yield Table((*heads[:3], *SUBJECT_COLUMNS), by_workload, folds=True)


def _workloads(found: RefusedMoves) -> str:
    """The first workloads with their numbers of pods, and the number of further workloads."""
    more = found.workloads - NAMED
    named = ", ".join(f"{each.subject} ({each.pods})" for each in found.subjects[:NAMED])
    return named + (f", and {more} more" if more > 0 else "")


def _figures(each: PolicySetOutcome) -> list[tuple[str, object]]:
    samples = each.utilisation
    mean = sum(one.cpu_percent for one in samples) / len(samples)
    memory = sum(one.memory_percent for one in samples) / len(samples)
    return [
        ("pods arrived", each.arrived),
        ("placements", each.placed),
        ("pods ended", each.ended),
        ("pending at the end", each.pending_at_end),
        ("wait until placed, p50", _duration(each.pending_p50_seconds) if each.placed else ""),
        ("wait until placed, p95", _duration(each.pending_p95_seconds) if each.placed else ""),
        ("wait until placed, max", _duration(each.pending_max_seconds) if each.placed else ""),
        ("rebalancing runs", each.runs),
        ("evictions", each.evicted),
        ("... returned to their node", each.returned),
        ("... replaced late", each.late),
        ("... blocked by a budget", each.blocked),
        ("preempted pods", each.preempted),
        ("violations, first run", sum(found.violations for found in each.strategies)),
        ("violations, at the end", sum(found.violations_at_end for found in each.strategies)),
        ("cpu requested, mean %", f"{mean:.1f}"),
        ("memory requested, mean %", f"{memory:.1f}"),
        ("nodes in use at the end", samples[-1].nodes_in_use),
    ]


def _allowances(outcomes: Iterable[PolicySetOutcome]) -> Iterator[Table]:
    """Budgets that a run used, and limits; each as in the run that left the least of it."""
    numbers = ("ALLOWED", "USED", "LEFT", "RUNS WITHOUT")
    budgets = [
        (
            outcome.label,
            each.policy,
            each.budget,
            each.allowed,
            each.used,
            each.left,
            each.runs_without,
            each.refusals,
            each.evicted,
            each.blocked,
            each.left_at_end,
        )
        for outcome in outcomes
        for each in outcome.budgets
        if each.policy
    ]
    if budgets:
        more = (*numbers, "REFUSALS", "EVICTED", "BLOCKED", "LEFT AT END")
        yield Table(
            ("POLICIES", "POLICY", "PODDISRUPTIONBUDGET", *(Column(each, right=True) for each in more)),
            budgets,
        )
    limits = [
        (
            outcome.label,
            each.policy,
            each.limit,
            each.subject or "the run",
            each.allowed,
            each.used,
            each.left,
            each.runs_without,
        )
        for outcome in outcomes
        for each in outcome.limits
    ]
    if limits:
        yield Table(
            ("POLICIES", "POLICY", "LIMIT", "OF", *(Column(each, right=True) for each in numbers)), limits
        )


def _utilisation(each: PolicySetOutcome) -> list[Table | str]:
    heads = ("AT", "CPU%", "MEMORY%", "NODES IN USE", "PENDING")
    return [
        Table(
            [Column(head, right=True) for head in heads],
            [
                (
                    _duration(one.at_seconds),
                    one.cpu_percent,
                    one.memory_percent,
                    one.nodes_in_use,
                    one.pending,
                )
                for one in each.utilisation
            ],
            title=f"Utilisation, {each.label}",
        )
    ]


def _duration(seconds: float) -> str:
    """Seconds formatted as kubectl formats ages: the two largest units."""
    whole = round(seconds)
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    parts = [
        f"{count}{unit}" for count, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (rest, "s")) if count
    ]
    return "".join(parts[:2]) or "0s"
