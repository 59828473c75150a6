"""The groups that a pod names, by the marks of each system."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.model.kinds.gang_marks import ANNOTATIONS, LABELS, Gang, gangs_of
from plimsoll.model.kinds.pod_group import GROUP_LABEL, UPSTREAM_GROUP_LABEL
from plimsoll.testing.builders import a_pod

LWS = "leaderworkerset.sigs.k8s.io"
KOORDINATOR = "gang.scheduling.koordinator.sh"


@pytest.mark.parametrize(
    ("pod", "kind", "key", "least"),
    [
        ({"labels": {"plimsoll.dev/pod-group": "g"}}, "PodGroup", "default/g", None),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, "PodGroup", "default/g", None),
        (
            {"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}},
            "PodGroup of scheduler-plugins",
            "default/g",
            None,
        ),
        (
            {"labels": {"pod-group.scheduling.sigs.k8s.io/name": "g"}},
            "pod group of scheduler-plugins",
            "default/g",
            None,
        ),
        ({"annotations": {"scheduling.k8s.io/group-name": "g"}}, "PodGroup of Volcano", "default/g", None),
        (
            {"annotations": {"scheduling.volcano.sh/group-name": "g"}},
            "PodGroup of Volcano",
            "default/g",
            None,
        ),
        ({"annotations": {"pod-group-name": "g"}}, "PodGroup of KAI", "default/g", None),
        ({"labels": {"jobset.sigs.k8s.io/jobset-name": "g"}}, "JobSet", "default/g", None),
        (
            {
                "labels": {"kueue.x-k8s.io/pod-group-name": "g"},
                "annotations": {"kueue.x-k8s.io/pod-group-total-count": "3"},
            },
            "pod group of Kueue",
            "default/g",
            3,
        ),
        ({"labels": {"kueue.x-k8s.io/pod-group-name": "g"}}, "pod group of Kueue", "default/g", None),
        (
            {
                "labels": {f"{LWS}/name": "g", f"{LWS}/group-index": "1"},
                "annotations": {f"{LWS}/size": "4"},
            },
            "group of LeaderWorkerSet",
            "default/g/1",
            4,
        ),
        (
            {"annotations": {f"{KOORDINATOR}/name": "g", f"{KOORDINATOR}/min-available": "2"}},
            "gang of Koordinator",
            "default/g",
            2,
        ),
        (
            {"annotations": {f"{KOORDINATOR}/name": "g", f"{KOORDINATOR}/min-available": "many"}},
            "gang of Koordinator",
            "default/g",
            None,
        ),
        (
            {"schedulingGroup": {"podGroupName": "g"}},
            "PodGroup of scheduling.k8s.io",
            "scheduling.k8s.io/default/g",
            None,
        ),
        (
            {"workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"}},
            "pod group of Workload",
            "default/w/g/0",
            None,
        ),
    ],
)
def test_each_mark_is_read(pod: dict[str, Any], kind: str, key: str, least: int | None) -> None:
    assert gangs_of(a_pod(**pod)) == (Gang(kind, key, least),)


def test_a_pod_without_marks_or_with_empty_ones_is_in_no_group() -> None:
    assert gangs_of(a_pod(labels={"app": "web", "plimsoll.dev/pod-group": ""})) == ()
    assert gangs_of(a_pod(annotations={"pod-group-name": ""})) == ()


def test_a_pod_may_be_in_several_groups() -> None:
    """Kueue and JobSet both form groups of pods that a PodGroup schedules."""
    labels = {"plimsoll.dev/pod-group": "g", "jobset.sigs.k8s.io/jobset-name": "j"}

    assert [each.kind for each in gangs_of(a_pod(labels=labels))] == ["PodGroup", "JobSet"]


def test_the_page_names_each_mark() -> None:
    """docs/gangs.md has a table of them; the second label of a LeaderWorkerSet is shortened."""
    page = Path(__file__).parents[3].joinpath("docs/gangs.md").read_text(encoding="utf-8")
    written = {*(key for each in (*LABELS, *ANNOTATIONS) for key in (*each.keys, each.size) if key)}
    written = (written | {GROUP_LABEL, UPSTREAM_GROUP_LABEL}) - {f"{LWS}/group-index"}

    assert [key for key in sorted(written) if f"`{key}`" not in page] == []
    assert "`spec.schedulingGroup.podGroupName`" in page
    assert "`spec.workloadRef`" in page
