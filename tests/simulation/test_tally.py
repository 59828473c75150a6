"""Sums over runs, and the transitions that they count."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from plimsoll.leadership.election import Due, Election, Failed, Now, Terms
from promises.findings import Facts
from simulation.faults import FaultKind
from simulation.run import Outcome
from simulation.tally import Tally, total
from simulation.transitions import counted, of_elections, of_late_events, of_moves, of_records
from simulation.world.features import Feature
from simulation.world.happenings import Happening

OUTCOME = Outcome(
    seed=7,
    digest="",
    violations=[],
    faults=Counter({FaultKind.LATENCY: 2}),
    facts=Facts(bindings=3),
    story=[],
    virtual_s=1800.0,
    steps=10,
    cpu_s=0.5,
    transitions=Counter({"record: new -> Planned": 4}),
    features=frozenset({Feature.GANGS}),
    happened=Counter({Happening.GANG_STARTED: 2}),
)


def tally(*outcomes: Outcome) -> Tally:
    """Of some runs."""
    made = Tally()
    for each in outcomes:
        made.take(each)
    return made


def test_pieces_of_a_long_run_add_up_to_the_whole(tmp_path: Path) -> None:
    """However it was cut, and through files."""
    failed = replace(OUTCOME, seed=3, violations=["1.0 lost", "2.0 lost, too"])
    tally(OUTCOME).write(tmp_path / "one")
    tally(failed, replace(OUTCOME, seed=9)).write(tmp_path / "two")

    added = total([tmp_path / "one", tmp_path / "two"])

    assert added == tally(OUTCOME, failed, replace(OUTCOME, seed=9))
    assert (added.seeds, added.first, added.last, added.virtual_s) == (3, 3, 9, 5400.0)
    assert added.failed == {3: "1.0 lost"}
    assert added.faults == {"LATENCY": 6}
    assert added.facts["bindings"] == 9


def test_a_report_names_what_has_never_happened() -> None:
    """Else a fault or a state that no seed reaches would look tested."""
    never = tally(OUTCOME).never()

    assert "LATENCY" not in never["faults"]
    assert "API_RESTART" in never["faults"]
    assert "new -> Planned" not in never["records"]
    assert "Planned -> Evicting" in never["records"]
    assert any("API_RESTART" in line for line in tally(OUTCOME).report())


def test_enough_seeds_lack_what_has_never_happened() -> None:
    """From the first on; a piece of a long run may lack anything."""
    piece = tally(OUTCOME)
    whole = replace(piece, first=1, last=300, seeds=300)
    one_less = replace(piece, first=1, last=299, seeds=299)
    later = replace(piece, first=301, last=900, seeds=600)

    assert whole.lacks
    assert [piece.lacks, one_less.lacks, later.lacks] == [False, False, False]


def test_nothing_is_lacking_when_all_has_happened() -> None:
    """Faults of bytes are required of seeds on the wire alone."""
    steps = of_elections()
    made = replace(
        OUTCOME,
        faults=Counter(FaultKind),
        happened=Counter(Happening),
        transitions=Counter(
            [f"record: {name}" for name in of_records()]
            + [f"move: {name}" for name in of_moves()]
            + [f"election: {name}" for name in steps]
        ),
    )
    whole = replace(tally(made), first=1, last=300, seeds=300)

    assert whole.never() == {what: [] for what in whole.never()}
    assert not whole.lacks
    assert "API_RESTART (1)" in whole.thin()["faults"]
    assert any(line.startswith("fewer than 5 times, moves: ") for line in whole.report())
    assert not any(line.startswith("fewer than") for line in tally(made).report())  # a single seed


def test_what_is_not_enumerated_is_lacking_in_any_run() -> None:
    """Then the enumeration is wrong, or what was held to be impossible has happened."""
    for name in (
        "record: Planned -> Failed",
        "move: CHECKING + NoEvent",
        "election: leads: Due -> Resign",
    ):
        made = tally(replace(OUTCOME, transitions=Counter({name: 1})))

        assert made.lacks
        assert any("not enumerated" in line for line in made.report())


def test_directed_plans_count_what_they_have_met() -> None:
    """They are no seeds, so a seed may have the same number."""
    made = Tally()
    made.count(replace(OUTCOME, violations=["1.0 lost"]))

    assert (made.seeds, made.failed, made.faults) == (0, {}, {"LATENCY": 2})


def test_transitions_come_from_the_state_machines() -> None:
    """All cells of the table are named once, as something decided or as a late event."""
    assert "Evicting -> Evicted" in of_records()
    assert "Evicted -> Evicting" not in of_records()
    assert "REPLACING + ReplacementReady" in of_moves()
    assert "COMMITTING + RecordAnswered (surge)" in of_moves()
    assert "CLOSED + StopPressed" in of_late_events()
    assert "stands: another's lease -> Rest" in of_elections()
    assert "leads: no lease -> Resign" not in of_elections()


def test_steps_of_elections_are_counted() -> None:
    """While a run is counted, and not after it."""
    counts: Counter[str] = Counter()
    election = Election("we", Terms())

    with counted(counts):
        election.handle(Due(), Now(0.0, 0.0))
        election.handle(Failed(), Now(1.0, 1.0))
    election.handle(Due(), Now(2.0, 2.0))

    assert counts == {"election: stands: Due -> Read": 1, "election: stands: Failed -> Rest": 1}
