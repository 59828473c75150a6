"""Judges the curves of a soak: flat memory, queues that empty, records that are pruned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import inf
from pathlib import Path

from soak.diary import CLUSTER, FAIL_OVER, FAULT, HAPPENINGS, PROCESSES, read
from soak.scenery import RECORDS_KEPT
from soak.slope import Slope, slope

Row = Mapping[str, str]

REST_BEFORE, LOAD, REST_AFTER = "rest before", "load", "rest after"
SERVER = "roadstead"
#: Caches fill, and allocators keep pages, in the first quarter of an hour of a life or of leading; in a short
#: soak in its first third.
WARM_UP_S, WARM_UP_SHARE = 900.0, 1 / 3
#: The development cluster keeps the changes of 60,000 versions for watches, at most 20,000 of each
#: collection, and Events for ten minutes: it is full only then.
SERVER_WARM_UP_S = 2400.0
#: A curve may grow so much while it is judged, and by this share of its mean if that is more.
ALLOWED = {"rss_mib": (1.0, 0.015), "files": (2.0, 0.05), "threads": (1.0, 0.05), "tasks": (2.0, 0.05)}
#: Counts at rest may be so much higher than before the load.
ABOVE_BASELINE = {"files": 6.0, "threads": 3.0, "tasks": 6.0}
#: What must become zero at rest.
EMPTY = (
    "active",
    "backoff",
    "unschedulable",
    "gated",
    "inflight_bindings",
    "assumed_pods",
    "moves_in_flight",
)
#: What must not have happened at all.
NEVER = ("contained_failures", "gc_uncollectable")
#: A pod waits at most so long, a fail-over included.
WAIT_S = 90.0
#: Records above the number that a policy keeps: those of one run, and of the minute until the next deletion.
RECORDS_ABOVE = 60


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a life in which the process had one role, after its warm-up.

    Attributes:
        role: "leader", "standby", or "" for the API server.
        rows: Its samples.
    """

    name: str
    life: int
    role: str
    rows: Sequence[Row]

    @property
    def span_s(self) -> float:
        """From the first to the last sample."""
        return float(self.rows[-1]["at_s"]) - float(self.rows[0]["at_s"]) if self.rows else 0.0

    @property
    def title(self) -> str:
        """Who it was."""
        return f"{self.name}, life {self.life}{self.role and f', {self.role}'}"

    def curve(self, column: str) -> tuple[list[float], list[float]]:
        """Hours since the soak began, and values."""
        known = [row for row in self.rows if row[column]]
        return [float(row["at_s"]) / 3600 for row in known], [float(row[column]) for row in known]

    def slope(self, column: str) -> Slope | None:
        """Change an hour; None when there are too few samples."""
        hours, values = self.curve(column)
        return slope(hours, values) if len(values) >= 4 else None

    def leaks(self, column: str) -> bool:
        """Whether it surely grew by more than is allowed."""
        _, values = self.curve(column)
        found = self.slope(column)
        least, share = ALLOWED[column]
        if found is None:
            return False
        return found.low * self.span_s / 3600 > max(least, share * sum(values) / len(values))


@dataclass(frozen=True, slots=True)
class Soaked:
    """The curves of one soak."""

    processes: Sequence[Row]
    cluster: Sequence[Row]
    happenings: Sequence[Row]

    @classmethod
    def of(cls, folder: Path) -> Soaked:
        """Read the files of a soak."""
        return cls(*(read(folder / name) for name in (PROCESSES, CLUSTER, HAPPENINGS)))

    def stretches(self) -> list[Stretch]:
        """All of them, without warm-ups."""
        found = []
        ordered = sorted(self.processes, key=lambda row: (row["name"], int(row["life"]), float(row["at_s"])))
        begin_quiet_s, end_quiet_s = self.quiet()
        # The API server takes more when a new leader lists everything: _peaks compares that.
        under_load = [
            row
            for row in ordered
            if row["phase"] == LOAD
            and (row["name"] != SERVER or begin_quiet_s <= float(row["at_s"]) < end_quiet_s)
        ]
        for (name, life, leads), rows in groupby(
            under_load, lambda row: (row["name"], row["life"], row["leads"])
        ):
            every = list(rows)
            span_s = float(every[-1]["at_s"]) - float(every[0]["at_s"])
            warm = float(every[0]["at_s"]) + min(WARM_UP_S, span_s * WARM_UP_SHARE)
            begin = SERVER_WARM_UP_S if name == SERVER else warm
            role = {"1": "leader", "0": "standby"}.get(leads, "")
            found.append(
                Stretch(name, int(life), role, [row for row in every if float(row["at_s"]) >= begin])
            )
        return found

    def quiet(self) -> tuple[float, float]:
        """The longest time without a fail-over; all of the soak where none was made."""
        ends = sorted(float(row["at_s"]) for row in self.happenings if row["kind"] == FAIL_OVER)
        return max(pairwise([0.0, *ends, inf]), key=lambda span: min(span[1], self._end_s()) - span[0])

    def judged(self) -> list[Stretch]:
        """Those that last at least half as long as the longest of their role."""
        every = self.stretches()
        longest = {
            role: max(one.span_s for one in every if one.role == role) for role in {one.role for one in every}
        }
        return [one for one in every if one.span_s >= longest[one.role] / 2 and len(one.rows) >= 4]

    def problems(self) -> list[str]:
        """What was wrong; nothing when the soak is flat."""
        return [
            *(
                f"at {float(row['at_s']):.0f} s {row['text']}"
                for row in self.happenings
                if row["kind"] == FAULT
            ),
            *self._leaks(),
            *self._peaks(),
            *self._above_baseline(),
            *self._never(),
            *self._of_the_cluster(),
        ]

    def _leaks(self) -> Iterable[str]:
        for one in self.judged():
            for column in ALLOWED:
                found = one.slope(column)
                if found is not None and one.leaks(column):
                    yield (
                        f"{one.title}: {column} grows by {found.value:.1f} an hour"
                        f" ({found.low:.1f} to {found.high:.1f}) over {one.span_s / 60:.0f} minutes"
                    )

    def _peaks(self) -> Iterable[str]:
        """Resident memory of a full API server after the quiet time, against the most that it had before."""
        _, end_s = self.quiet()
        rows = [row for row in self.processes if row["name"] == SERVER and row["phase"] == LOAD]
        before = _most([row for row in rows if float(row["at_s"]) < end_s], "rss_mib")
        after = _most([row for row in rows if float(row["at_s"]) >= end_s], "rss_mib")
        least, share = ALLOWED["rss_mib"]
        if before is None or after is None or end_s < SERVER_WARM_UP_S:
            return
        if after > before + max(least, share * before):
            yield f"{SERVER}: rss_mib reaches {after:.0f} at late fail-overs, {before:.0f} before them"

    def _above_baseline(self) -> Iterable[str]:
        after = self._of_phase(REST_AFTER)
        if not after:
            yield "there was no rest after the load"
        for (name, leads), rows in _by_role(after).items():
            before = [row for row in self._of_phase(REST_BEFORE) if row["leads"] == leads]
            for column, above in ABOVE_BASELINE.items():
                baseline, now = _most(before, column), _most(rows[-3:], column)
                if baseline is not None and now is not None and now > baseline + above:
                    yield f"{name}: {column} at rest: {now:.0f}, before the load {baseline:.0f}"
            for column in EMPTY:
                if least := min((float(row[column]) for row in rows if row[column]), default=0.0):
                    yield f"{name}: {column} stays above {least - 1:.0f} at rest"

    def _never(self) -> Iterable[str]:
        for column in NEVER:
            if most := _most(self.processes, column):
                yield f"{column} reached {most:.0f}"

    def _of_the_cluster(self) -> Iterable[str]:
        waited = _most([row for row in self.cluster if row["phase"]], "oldest_waiting_s") or 0.0
        if waited > WAIT_S:
            yield f"a pod waited for a node for {waited:.0f} s"
        for column in ("records_enforced", "records_predicted"):
            records = _most(self.cluster, column) or 0.0
            if records > RECORDS_KEPT + RECORDS_ABOVE:
                yield f"{column} reached {records:.0f}, of which the policy keeps {RECORDS_KEPT}"

    def _end_s(self) -> float:
        return max((float(row["at_s"]) for row in self.processes if row["phase"] == LOAD), default=0.0)

    def _of_phase(self, phase: str) -> list[Row]:
        return [row for row in self.processes if row["phase"] == phase and row["name"] != SERVER]


def _by_role(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["name"], row["leads"]), []).append(row)
    return found


def _most(rows: Iterable[Row], column: str) -> float | None:
    return max((float(row[column]) for row in rows if row[column]), default=None)
