"""The record of a soak in CSV files: curves of processes and of the cluster, and happenings."""

from __future__ import annotations

import csv
import time
from collections.abc import Mapping
from pathlib import Path

PROCESSES, CLUSTER, HAPPENINGS = "processes.csv", "cluster.csv", "happenings.csv"

#: Curves of a process; the operator's own are empty for others.
OF_PROCESSES = (
    *("at_s", "name", "life", "age_s", "leads", "phase"),
    *("rss_mib", "pss_mib", "unique_mib", "files", "threads", "cpu_share"),
    *("tasks", "active", "backoff", "unschedulable", "gated", "inflight_bindings", "moves_in_flight"),
    *("assumed_pods", "requests_per_s", "pod_events_per_s", "schedule_p50_s", "schedule_p99_s"),
    *("cycle_p99_s", "gc_full", "gc_uncollectable", "loop_lag_p99_s", "events_dropped", "watch_failures"),
    *("contained_failures",),
)
OF_CLUSTER = (
    *("at_s", "phase", "pods", "waiting", "oldest_waiting_s", "nodes", "events"),
    *("records_enforced", "records_predicted", "open_records", "oldest_finished_s", "lease_age_s", "load"),
)
OF_HAPPENINGS = ("at_s", "kind", "text")

#: A kind of happening that is a failure of the operator.
FAULT = "fault"
FAIL_OVER = "fail-over"


class Diary:
    """Writes rows as they come, so that a soak that is cut short has its curves, too."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._began = time.monotonic()
        self._files = {
            name: (folder / name).open("w", newline="", encoding="utf-8")
            for name in (PROCESSES, CLUSTER, HAPPENINGS)
        }
        columns = {PROCESSES: OF_PROCESSES, CLUSTER: OF_CLUSTER, HAPPENINGS: OF_HAPPENINGS}
        self._writers = {
            name: csv.DictWriter(file, columns[name], lineterminator="\n")
            for name, file in self._files.items()
        }
        for name, writer in self._writers.items():
            writer.writeheader()
            self._files[name].flush()

    @property
    def at_s(self) -> float:
        """Seconds since the soak began."""
        return time.monotonic() - self._began

    def write(self, name: str, row: Mapping[str, object]) -> None:
        """One row; numbers are rounded."""
        values = {"at_s": self.at_s, **row}
        shown = {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}
        self._writers[name].writerow(shown)
        self._files[name].flush()

    def note(self, kind: str, text: str) -> None:
        """Something happened."""
        self.write(HAPPENINGS, {"kind": kind, "text": text})
        print(f"{self.at_s:7.0f} s  {kind}: {text}", flush=True)

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()


def read(path: Path) -> list[dict[str, str]]:
    """The rows of one file, as text; an empty cell is an unknown figure."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
