"""Checker judges a run from the API server's side: each commit, and the request that made it.

It shares no code with the operator, and none with the development cluster: quantities, budgets, records and
leases are read by functions of this package. It keeps its own view of all objects from the commits and has
no clock: the time comes with each commit, so commits may come from a store or from watches.
"""

from __future__ import annotations

import math
from dataclasses import replace

from promises.commits import Author, Commit
from promises.conditions import ConditionPromise
from promises.devices import DevicePromise
from promises.election import ElectionPromise
from promises.evictions import EvictionPromise
from promises.final_state import FinalStatePromise
from promises.findings import Facts, Findings
from promises.gangs import GangPromise
from promises.limits import LimitPromise
from promises.lives import PodLives
from promises.placement import PlacementPromise
from promises.preemption import PreemptionPromise
from promises.protections import ProtectionPromise
from promises.record_book import RecordBook
from promises.records import RecordPromise
from promises.rest import RestPromise
from promises.statuses import StatusPromise
from promises.view import View

#: Namespace and name of the lease of the operator.
LEASE = ("kube-system", "plimsoll")

#: Seconds for which two claims may have one device: leaders may change several times meanwhile. Until one
#: gives way, no pod is bound with it.
CONTESTED_S = 120.0


class Checker:
    """All promises of one run.

    Args:
        lease: Namespace and name of the operator's lease.
        lease_s: Seconds after which it has expired.
        stale_s: Seconds that what the operator sees may be behind.
    """

    def __init__(
        self,
        lease: tuple[str, str] = LEASE,
        lease_s: float = 15.0,
        stale_s: float = 30.0,
    ) -> None:
        self.view = View(stale_s)
        self._findings = findings = Findings()
        lives, book = PodLives(), RecordBook()
        self._election = ElectionPromise(findings, lease, lease_s)
        self._records = RecordPromise(self.view, findings, lives, book)
        self._final = FinalStatePromise(self.view)
        self._gangs = GangPromise(self.view, findings)
        self._preemption = PreemptionPromise(self.view, findings, book)
        self._conditions = ConditionPromise(self.view, lives)
        self._statuses = StatusPromise(self.view, book)
        self._rest = RestPromise(findings, lives, book)
        self._devices = DevicePromise(self.view, findings, contested_s=CONTESTED_S)
        self._evictions = EvictionPromise(self.view, findings, self._election, book)
        self._followers = (
            lives,
            book,
            self._election,
            PlacementPromise(self.view, findings, self._election),
            self._gangs,
            self._preemption,
            self._devices,
            ProtectionPromise(self.view, findings, lives, book),
            LimitPromise(self.view, findings, lives, book),
            self._statuses,
            self._rest,
            self._evictions,
            self._records,
            self._final,
        )

    @property
    def violations(self) -> list[str]:
        """Sentences, each with its time."""
        return self._findings.violations

    @property
    def facts(self) -> Facts:
        """What has been seen."""
        return self._findings.facts

    def judge_request(self, author: Author, at: float) -> None:
        """A request is at the API server, which may yet refuse it."""
        self._election.judge_request(author, at)
        self._evictions.judge_request(author, at)

    def judge(self, commit: Commit) -> None:
        """A write was committed; commits come in the order of their resourceVersions."""
        if commit.before is None and commit.type != "ADDED":
            commit = replace(commit, before=self.view.find(commit.collection, *commit.key))
        self.view.see(commit)
        for each in self._followers:
            each.judge(commit)

    def judge_end(self, scheduler: str, still_s: float, at: float, calm_since: float = math.inf) -> None:
        """What must hold once nothing has gone wrong for a while.

        Args:
            scheduler: The scheduler name that the operator serves.
            still_s: Seconds in which the operator must have written nothing.
            at: The time.
            calm_since: Since when nothing has gone wrong; left out, it is not judged what has begun since.
        """
        for sentence in self.unfinished(scheduler, still_s, at, calm_since):
            self._findings.violated(at, sentence)

    def unfinished(
        self, scheduler: str, still_s: float, at: float, calm_since: float = math.inf
    ) -> list[str]:
        """What :meth:`judge_end` would find."""
        return [
            *self._records.unfinished(still_s, at),
            *self._final.unfinished(scheduler, still_s, at),
            *self._gangs.unfinished(at, calm_since),
            *self._preemption.unfinished(still_s, at),
            *self._conditions.unfinished(scheduler, still_s, at),
            *self._statuses.unfinished(still_s, at),
            *self._rest.unfinished(calm_since),
            *self._devices.unfinished(),
            *self._devices.forgotten(scheduler),
        ]
