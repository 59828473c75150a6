"""The lease of the group: replicas that share it keep every other process out in all troubles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis.stateful import invariant

from leadership.test_electing_together import STEP_S, TERMS, Candidates, Process
from plimsoll.leadership.election import Election, Resign
from plimsoll.leadership.role_elections import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class Member(Process):
    """One that renews the lease together with others; the first candidate of a simulation is alone."""

    name: str = ""

    def __post_init__(self) -> None:
        """Begin."""
        Process.__post_init__(self)
        self.name = self.identity
        if not self.identity.endswith("-0"):
            self.election = Election(GROUP, TERMS, is_shared=True)


class Groups(Candidates):
    """The same simulation, where all candidates but one share the lease."""

    def _process(self, clock: tuple[float, float]) -> Process:
        alone = clock is self.clocks[0]
        return Member(f"candidate-{next(self.names)}{'-0' if alone else '-1'}", *clock)

    def _believing(self) -> Iterable[str]:
        return (each.election.identity for each in self.processes if self._believes(each))

    def _believes(self, process: Process) -> bool:
        return process.election.is_leading(process.clock(self.true))

    @invariant()
    def at_most_one_may_write(self) -> None:
        """Either members of the group, any number of them, or the one that is alone."""
        assert len(set(self._believing())) <= 1

    @invariant()
    def who_leads_holds_the_lease(self) -> None:
        """No candidate believes in a lease that another one has taken."""
        for identity in self._believing():
            assert self.server.lease is not None
            assert self.server.lease.holder == identity

    def teardown(self) -> None:
        """Without trouble the group as a whole leads, or the one alone."""
        self.messages.clear()
        for process in self.processes:
            process.is_paused, process.link = False, "works"
        believing: list[list[bool]] = []
        for _ in range(240):
            for index, process in enumerate(self.processes):
                if isinstance(process.instruction, Resign):
                    self.processes[index] = self._process(self.clocks[index])
            self._pass(STEP_S, 0.5)
            believing.append([self._believes(each) for each in self.processes])

        late = believing[160:]
        assert not self.processes or all(
            each[0] is not any(each[1:]) and len(set(each[1:])) <= 1 for each in late
        )
        assert len({each[0] for each in late if each}) <= 1, "they take turns"


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=settings.default.max_examples, stateful_step_count=20)
