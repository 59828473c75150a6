"""Lays out the outcome of a replay: figures of each set of policies, strategies, and reasons of refusals."""

from collections.abc import Iterable, Iterator

from plimsoll.cli.output import View
from plimsoll.cli.tables import Column, Table
from plimsoll.simulation.report import PolicySetOutcome, ReplayReport


def replay_view(report: ReplayReport, *, reasons: bool = True) -> View:
    """The tables of a report; ``reasons`` adds why pods stay or are pending."""
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
        for table in refusal_tables(outcomes):
            view += ["", table]
    pending = [
        (each.label, found.count, found.pods[0], found.reason)
        for each in outcomes
        for found in each.pending_reasons
    ]
    if pending and reasons:
        columns = ["POLICIES", Column("PENDING AT THE END", right=True), "SUCH AS", "REASON"]
        view += ["", Table(columns, pending, folds=True)]
    for each in outcomes:
        view += [f"{each.label}: {problem}" for problem in each.problems]
    return view


def refusal_tables(outcomes: Iterable[PolicySetOutcome]) -> Iterator[Table]:
    """The reasons for which pods stay though strategies would move them, if there are any."""
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
            each.message,
        )
        for label, each in found
    ]
    yield Table(heads, rows, folds=True)


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
