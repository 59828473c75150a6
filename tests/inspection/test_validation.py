"""Documents judged together: each in the words of the operator, and policies against one another."""

from __future__ import annotations

from typing import Any

import pytest

from inspection.contents import NOW, a_policy_document
from plimsoll.cli.clusters import catalogue
from plimsoll.inspection.validation import SubmittedDocument, Validation, validated


def judged(*documents: dict[str, Any]) -> Validation:
    """The answer for one file with these documents."""
    return validated(
        [SubmittedDocument("f", at, each) for at, each in enumerate(documents, 1)], catalogue(), NOW
    )


@pytest.mark.parametrize(
    ("document", "verdict", "said"),
    [
        pytest.param({}, "refused", "kind: is required", id="nothing"),
        pytest.param(
            {"kind": "DeschedulerPolicy", "apiVersion": "descheduler/v1alpha2"},
            "skipped",
            "DeschedulerPolicy is of another scheduler; plimsoll convert makes a SchedulingPolicy of it",
            id="of-descheduler",
        ),
        pytest.param(
            {"kind": "Pod", "apiVersion": "v1"},
            "skipped",
            "the kind is not of plimsoll.dev",
            id="of-kubernetes",
        ),
        pytest.param(
            {"kind": "Policy", "apiVersion": "plimsoll.dev/v1alpha1"},
            "skipped",
            "plimsoll.dev has no kind Policy; the kinds are",
            id="of-no-kind",
        ),
        pytest.param(
            {**a_policy_document(), "apiVersion": "plimsoll.dev/v9"},
            "refused",
            'apiVersion: "plimsoll.dev/v9" is not served; use plimsoll.dev/v1alpha1',
            id="of-a-later-version",
        ),
    ],
)
def test_a_document_is_judged_by_its_kind(document: dict[str, Any], verdict: str, said: str) -> None:
    (found,) = judged(document).documents
    assert (found.verdict, found.message[: len(said)]) == (verdict, said)


def test_policies_lose_to_those_before_them_for_different_reasons() -> None:
    """A name that is taken, and a scheduler name that an older one has; each is said, the others stand."""

    def policy(name: str, day: int, scheduler: str) -> dict[str, Any]:
        return a_policy_document(name, f"2026-01-0{day}T00:00:00Z", scheduling={"schedulerName": scheduler})

    answer = judged(
        policy("young", 3, "a"), policy("old", 1, "a"), policy("young", 2, "c"), policy("last", 4, "d")
    )

    assert [each.reason for each in answer.documents] == ["SchedulerNameTaken", None, "NameTaken", None]
    assert (answer.accepted, answer.refused, answer.skipped) == (2, 2, 0)
