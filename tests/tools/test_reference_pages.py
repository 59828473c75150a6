"""docs/reference: fields, refusals, events, phases and keys, as the code has them."""

from __future__ import annotations

from pathlib import Path

from pages import fields, vocabulary
from plimsoll.planning.limits import LimitLevel
from plimsoll.rebalancing.breakers import STOP

REFERENCE = Path(__file__).parents[2] / "docs/reference"


def present(folder: Path) -> dict[str, str]:
    """The pages of a folder, keyed by their names."""
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}


def test_the_pages_are_as_the_code_is() -> None:
    assert present(REFERENCE) == vocabulary.pages(), "run `make docs`"
    assert present(REFERENCE / "kinds") == fields.pages(), "run `make docs`"


def test_reasons_are_found_in_every_way_that_they_are_written() -> None:
    """As a string, as a constant, as an imported constant, and as a limit."""
    found = vocabulary.refusals(vocabulary.modules())

    limits = {level.value for level in LimitLevel}

    assert {"Gone", "MendsNothing", "TwoYardsticks", "PodDisruptionBudget"} | limits <= set(found)
    assert "it moves already" in found["Moved"]


def test_a_field_has_its_default_and_what_is_required_says_so() -> None:
    page = fields.pages()["schedulingpolicy.md"]

    assert "| `spec.rebalancing.mode` | `DryRun` or `Approve` or `Enforce` | `DryRun` |" in page
    assert "| `spec.scheduling.schedulerName` | string | required |" in page


def test_keys_and_events_are_found() -> None:
    found = vocabulary.modules()

    assert (STOP, "`rebalancing.breakers`") in vocabulary.keys(found)
    assert {"Scheduled", "FailedScheduling", "Preempted"} <= {
        reason for reason, *_ in vocabulary.events(found)
    }
