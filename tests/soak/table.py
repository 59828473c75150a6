"""Tables of a soak for docs/survival/soak.md: the long stretches of processes, figures and the verdict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from soak.diary import FAIL_OVER
from soak.pictures import PICTURES
from soak.replicas import WAYS
from soak.scenery import RECORDS_KEPT
from soak.verdict import LOAD, Row, Soaked, Stretch

HEADINGS = (
    "Process",
    "Judged, min",
    "Resident memory, MiB",
    "Change an hour, MiB (95 %)",
    "Files",
    "Threads",
    "Tasks",
    "CPU, % of a core",
)
_SECONDS = re.compile(r"([\d.]+) s after")

#: Around what a page has of the latest soak.
BEGIN, END = "<!-- soak: written by make soak -->", "<!-- end of soak -->"


def written(soaked: Soaked, circumstances: str, page: Path, pictures: str) -> None:
    """Replace what stands between the two marks of a page."""
    text = page.read_text(encoding="utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert begin, f"{page} has no place for a soak"
    assert end, f"the place for a soak in {page} has no end"
    content = "\n".join(section(soaked, circumstances, pictures))
    page.write_text(f"{head}{BEGIN}\n\n{content}\n\n{END}{tail}", encoding="utf-8")


def section(soaked: Soaked, circumstances: str, pictures: str) -> Iterable[str]:
    """Circumstances, both tables, the verdict, the pictures."""
    yield f"{circumstances}\n"
    yield f"| {' | '.join(HEADINGS)} |"
    yield "| --- " + "| ---: " * (len(HEADINGS) - 1) + "|"
    for one in soaked.judged():
        yield _row(one)
    yield ""
    for figure in figures(soaked):
        yield f"- {figure}"
    yield ""
    problems = soaked.problems()
    yield f"Verdict: {'; '.join(problems) if problems else 'flat'}.\n"
    for each in PICTURES:
        yield f"![{each.title}]({pictures}/{each.name}.svg)"


def figures(soaked: Soaked) -> Iterable[str]:
    """What was done and how the operator took it, a line each."""
    leaders = [row for row in soaked.processes if row["phase"] == LOAD and row["leads"] == "1"]
    under_load = [row for row in soaked.cluster if row["phase"] == LOAD]
    kinds = Counter(row["kind"] for row in soaked.happenings)
    ended = [row["text"] for row in soaked.happenings if row["kind"] == FAIL_OVER]
    ways = ", ".join(f"{sum(way in text for text in ended)} {way}" for way in WAYS)
    taken = [row["text"] for row in soaked.happenings if row["kind"] == "lease"][
        1:
    ]  # the first had no holder
    longest = max((float(found[1]) for text in taken if (found := _SECONDS.search(text))), default=0.0)
    median, slow = _median(leaders, "schedule_p50_s"), _median(leaders, "schedule_p99_s")
    records = [_most(soaked.cluster, column) for column in ("records_enforced", "records_predicted")]
    collections = _most(soaked.processes, "gc_full")
    yield (
        f"{_mean(leaders, 'pod_events_per_s'):.0f} pod events and"
        f" {_mean(leaders, 'requests_per_s'):.0f} requests of the leader a second;"
        f" {kinds['flap']} flaps of nodes; all connections were cut {kinds['cut']} times"
    )
    yield f"{len(ended)} fail-overs ({ways}); a new leader at most {longest:.1f} s after the last renewal"
    yield (
        f"a pod had its node after {median * 1000:.0f} ms (99th percentile: {slow * 1000:.0f} ms;"
        " medians of the figures of ten seconds); the longest wait, fail-overs included, was"
        f" {_most(under_load, 'oldest_waiting_s'):.0f} s"
    )
    yield (
        f"at most {records[0]:.0f} and {records[1]:.0f} records of the two policies"
        f" (each keeps {RECORDS_KEPT});"
        f" {_most(soaked.cluster, 'events'):,.0f} Events;"
        f" {collections:.0f} full garbage collections in one life"
    )
    yield from (row["text"] for row in soaked.happenings if row["kind"] == "summary")


def _row(one: Stretch) -> str:
    _, memory = one.curve("rss_mib")
    found = one.slope("rss_mib")
    change = f"{found.value:+.1f} ({found.low:+.1f} to {found.high:+.1f})" if found else "-"
    cells = [one.title, f"{one.span_s / 60:.0f}", f"{memory[0]:.0f} to {memory[-1]:.0f}", change]
    for column in ("files", "threads", "tasks"):
        _, values = one.curve(column)
        cells.append(f"{min(values):.0f} to {max(values):.0f}" if values else "-")
    _, shares = one.curve("cpu_share")
    cells.append(f"{100 * sum(shares) / max(1, len(shares)):.0f}")
    return f"| {' | '.join(cells)} |"


def _known(rows: Iterable[Row], column: str) -> list[float]:
    return sorted(float(row[column]) for row in rows if row[column])


def _mean(rows: Iterable[Row], column: str) -> float:
    values = _known(rows, column)
    return sum(values) / max(1, len(values))


def _median(rows: Iterable[Row], column: str) -> float:
    values = _known(rows, column)
    return values[len(values) // 2] if values else 0.0


def _most(rows: Iterable[Row], column: str) -> float:
    return max(_known(rows, column), default=0.0)
