"""docs/reference: fields, refusals, events, phases and keys, as the code has them."""

from __future__ import annotations

import ast
import itertools
import re
import textwrap
from pathlib import Path

import pytest

from pages import conditions, fields, framework, links, meanings, moves, vocabulary
from plimsoll.api.v1alpha1.annotations import STOP
from plimsoll.planning.limits import LimitLevel

REFERENCE = Path(__file__).parents[2] / "docs/reference"


def present(folder: Path) -> dict[str, str]:
    """The pages of a folder, keyed by their names."""
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}


def test_the_pages_are_as_the_code_is() -> None:
    written = {
        **vocabulary.pages(),
        "conditions.md": conditions.page(),
        "links.md": links.page(links.links()),
        "moves.md": moves.page(),
        "framework.md": framework.page(),
    }
    assert present(REFERENCE) == written, "run `make docs`"
    assert present(REFERENCE / "kinds") == fields.pages(), "run `make docs`"
    schema = (REFERENCE / "kinds/auditedeviction.schema.json").read_text(encoding="utf-8")
    assert schema == fields.line_schema(), "run `make docs`"


def test_reasons_are_found_in_every_way_that_they_are_written() -> None:
    """As a string, as a constant, as an imported constant, and as a limit."""
    found = vocabulary.refusals(vocabulary.modules())

    limits = {level.value for level in LimitLevel}

    assert {"Gone", "MendsNothing", "TwoYardsticks", "PodDisruptionBudget"} | limits <= set(found)
    assert "it moves already" in found["Moved"]


#: What tells the sentences of a reason apart that have most of their words in common.
FACTS = {
    "Budget": "a budget that allows none, and one that is not met",
    "FailedBarePods": "the evictor's argument, which lets pods go that have failed",
    "NeverEvict": "the pod's annotation, and its namespace's",
    "NoRoomMade": "a pod, and its resize",
    "OptedOut": "for ever, and for a time",
    "OtherScheduler": "a scheduler that is unknown, and one that the scope does not name",
    "OutOfScope": "the namespace's name, its labels, and the pod's",
}


def test_one_reason_says_one_fact_in_one_sentence() -> None:
    """Two sentences with the same words need two facts, also of an event and a record."""
    found = vocabulary.modules()
    said, told = vocabulary.refusals(found), vocabulary.event_sentences(found)
    assert len(told) >= 10
    alike = {
        reason
        for reason in {**said, **told}
        for sentences in [[*said.get(reason, ()), *told.get(reason, ())]]
        for one, other in itertools.combinations(map(words, sentences), 2)
        if one & other and len(one & other) >= len(one | other) / 2
    }
    assert alike == set(FACTS)


def words(sentence: str) -> set[str]:
    """What a sentence says, without articles and who it is about."""
    small = {"a", "an", "and", "is", "it", "its", "node", "of", "pod", "pods", "that", "the", "to"}
    return set(re.findall("[a-z.]+", sentence.lower())) - small


def test_what_an_event_says_is_found_where_it_is_emitted() -> None:
    """As a string, as a variable of the function, with the action before it or without one."""
    tree = ast.parse(
        textwrap.dedent(
            """
            def tell(self, pod):
                text = f"no room for {pod}"
                self.record(EventNote(pod, "NoRoom", "Scheduling", text))
                self.note(pod, "NoRoom", "there is no room")
                self.note(pod, "NoRoom", text)
            """
        )
    )

    found = vocabulary.event_sentences([vocabulary.Module("a", tree, {})])

    assert {reason: sorted(each) for reason, each in found.items()} == {
        "NoRoom": ["no room for \u2026", "there is no room"]
    }


def test_a_field_has_its_default_and_what_is_required_says_so() -> None:
    page = fields.pages()["schedulingpolicy.md"]

    assert "| `spec.rebalancing.mode` | `DryRun` or `Approve` or `Enforce` | `DryRun` |" in page
    assert "| `spec.scheduling.schedulerName` | string | required |" in page


def test_keys_and_events_are_found() -> None:
    found = vocabulary.modules()

    assert (STOP, "`api.v1alpha1.annotations`") in vocabulary.keys(found)
    assert {"Scheduled", "FailedScheduling", "Preempted"} <= {
        reason for reason, *_ in vocabulary.events(found)
    }


def test_a_new_reason_of_a_condition_needs_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a key of what degrades a policy, as a key that is set, as a reason of an error."""
    found = vocabulary.modules()
    said = """
    def of(self):
        found = {"AddedHere": 1} | {A_CONSTANT: 2}
        found["AddedThere"] = 3
        self.degrade("AddedByCall", "")
    """
    tree = ast.parse(textwrap.dedent(said))
    added = vocabulary.Module("rebalancing.runs.degraded_reasons", tree, {"A_CONSTANT": "AddedByConstant"})

    assert conditions.reasons([added]) == {"AddedHere", "AddedThere", "AddedByCall", "AddedByConstant"}
    monkeypatch.setattr(conditions, "modules", lambda: [*found, added])
    with pytest.raises(KeyError, match="AddedBy"):
        conditions.page()


def test_every_reason_that_a_run_of_the_tests_has_seen_is_known() -> None:
    """Of each kind of object, one that is written in another way than the others."""
    known = conditions.reasons(vocabulary.modules())

    assert {"SolverMissing", "TwoYardsticks", "SamePods", "ExtenderFailed", "StartTimedOut"} - known == {
        "StartTimedOut"  # an event, no condition
    }


def test_a_word_without_a_meaning_fails() -> None:
    with pytest.raises(KeyError, match="New"):
        meanings.check("events", {*meanings.EVENTS, "New"}, meanings.EVENTS)
    with pytest.raises(KeyError, match="Gone"):
        meanings.check("events", meanings.EVENTS, {**meanings.EVENTS, "Gone": ""})
