"""``plimsoll check`` knows a managed cloud by the labels of its nodes, and says what is missing."""

from __future__ import annotations

import pytest

from plimsoll.access.rights import Right
from plimsoll.check.clouds import judged_cloud
from plimsoll.preflight.findings import Certainty, Level, Unread
from plimsoll.preflight.other_schedulers import PROGRAMS, DetectedProgram, ProgramActivity

LABELS = {
    "EKS": "eks.amazonaws.com/nodegroup",
    "GKE": "cloud.google.com/gke-nodepool",
    "AKS": "kubernetes.azure.com/cluster",
    "OpenShift": "node.openshift.io/os_id",
}
IDLE = ProgramActivity({}, (), ())
BUSY = ProgramActivity({"default-scheduler": "mine"}, ("mine",), ("mine",))
SEEN = [DetectedProgram(each, ("it was seen",), Certainty.CERTAIN) for each in PROGRAMS]


@pytest.mark.parametrize(("name", "label"), LABELS.items())
def test_a_cloud_is_known_by_its_nodes(name: str, label: str) -> None:
    """With the page; nothing is missing where no policy is in the way."""
    keys = {"Node a": [label], "Node b": ["kubernetes.io/hostname"], "Namespace c": [label]}
    (found,) = judged_cloud(keys, [], IDLE)

    assert (found.level, found.subject) == (Level.OK, f"cloud {name}")
    assert found.message.startswith("1 node has its labels; ")
    assert f"docs/how-to/run-on-{name.lower()}.md" in found.message


@pytest.mark.parametrize(("name", "label"), LABELS.items())
def test_what_runs_out_of_sight_is_said(name: str, label: str) -> None:
    """A scheduler for the same name everywhere, and an autoscaler where the cloud hides it."""
    _, *found = judged_cloud({"Node a": [label]}, [], BUSY)

    hides = name != "OpenShift"
    assert [each.level for each in found] == [Level.ERROR, Level.WARNING][: 1 + hides]
    assert "policy mine serves default-scheduler too" in found[0].message
    assert not hides or "it empties nodes, and policy mine too" in found[1].message
    assert {each.certainty for each in found} == {Certainty.LIKELY}


def test_what_is_seen_at_work_is_said_once() -> None:
    """By the finding about the program itself."""
    assert len(list(judged_cloud({"Node a": [LABELS["GKE"]]}, SEEN, BUSY))) == 1


def test_openshift_on_the_machines_of_another_counts_as_openshift() -> None:
    both = {"Node a": [LABELS["AKS"], LABELS["OpenShift"]], "Node b": [LABELS["AKS"]]}
    (found,) = judged_cloud(both, [], IDLE)

    assert found.subject == "cloud OpenShift"


@pytest.mark.parametrize(
    "keys", [{}, {"Node a": ["kubernetes.io/hostname"]}, Unread(Right("list", "", "nodes"), "", 403, "no")]
)
def test_other_clusters_are_no_cloud(keys: dict[str, list[str]] | Unread) -> None:
    assert list(judged_cloud(keys, [], BUSY)) == []
