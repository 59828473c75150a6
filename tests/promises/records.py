"""RecordPromise: each move ends."""

from __future__ import annotations

from promises.commits import Commit
from promises.evictions import RECORDS
from promises.findings import Findings
from promises.view import View

#: Phases of moves that end within seconds; a replacement may be waited for much longer.
PASSING = frozenset(("Planned", "Evicting"))


class RecordPromise:
    """Follows the records of moves."""

    def __init__(self, view: View, findings: Findings) -> None:
        self._view = view
        self._findings = findings
        self._written: dict[str, float] = {}  #: the last write of each record

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection != RECORDS:
            return
        phase = (commit.obj.get("status") or {}).get("phase", "")
        self._written[commit.obj["metadata"]["uid"]] = commit.at
        if phase and phase != ((commit.before or {}).get("status") or {}).get("phase"):
            phases = self._findings.facts.phases
            phases[phase] = phases.get(phase, 0) + 1

    def judge_end(self, still_s: float, at: float) -> None:
        """No record is left in the middle."""
        for record in self._view.objects(RECORDS):
            meta, phase = record["metadata"], (record.get("status") or {}).get("phase")
            if phase in PASSING and self._written[meta["uid"]] < at - still_s:
                self._findings.violated(at, f"the record {meta['name']} is still {phase}")
