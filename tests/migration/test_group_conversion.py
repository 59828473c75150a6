"""PodGroups of every kind as those of every other: values that are carried over, sentences for the rest."""

from itertools import permutations
from typing import Any

import pytest

from migration.checks import CHECKS, PLUGINS
from plimsoll.migration.conversion import ConvertedFiles, convert_documents
from plimsoll.migration.documents import MigrationError, SourceDocument
from plimsoll.migration.group_conversion import FORMATS
from plimsoll.migration.report import FieldChange

WISHES: dict[str, dict[str, Any]] = {
    "scheduling.k8s.io": {
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 4}},
            "priorityClassName": "high",
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
            "disruptionMode": {"all": {}},
        },
        "metadata": {"annotations": {"plimsoll.dev/preferred-topology": "host", "mine": "stays"}},
    },
    "plimsoll.dev": {
        "spec": {
            "minMember": 4,
            "minResources": {"cpu": "8"},
            "scheduleTimeoutSeconds": 90,
            "topology": {"required": "rack", "preferred": "host"},
        }
    },
    "scheduling.x-k8s.io": {
        "spec": {"minMember": 4, "minResources": {"cpu": "8"}, "scheduleTimeoutSeconds": 90}
    },
    "scheduling.volcano.sh": {
        "spec": {
            "minMember": 4,
            "minResources": {"cpu": "8"},
            "priorityClassName": "high",
            "queue": "research",
            "minTaskMember": {"ps": 1},
            "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
        }
    },
    "scheduling.run.ai": {
        "spec": {
            "minMember": 4,
            "queue": "research",
            "priorityClassName": "high",
            "topologyConstraint": {
                "topology": "cluster",
                "requiredTopologyLevel": "rack",
                "preferredTopologyLevel": "host",
            },
            "subGroups": [{"name": "workers", "minMember": 3}],
        }
    },
}


def a_group(kind: str) -> dict[str, Any]:
    """A PodGroup that says all that it can."""
    wishes = WISHES[kind]
    metadata = {"name": "train", "namespace": "lab", "uid": "1", **wishes.get("metadata", {})}
    head = {"apiVersion": FORMATS[kind].versions[0], "kind": "PodGroup"}
    return {**head, "metadata": metadata, "spec": wishes["spec"], "status": {"phase": "Running"}}


def converted(document: dict[str, Any], target: str) -> ConvertedFiles:
    """What becomes of one document."""
    source = SourceDocument("groups.yaml", document)
    return convert_documents([source], CHECKS, PLUGINS, keep_behaviour=False, groups_as=target)


@pytest.mark.parametrize(("source", "target"), list(permutations(FORMATS, 2)))
def test_what_both_kinds_can_say_is_carried_over_and_the_rest_is_reported(source: str, target: str) -> None:
    """Every field once; and back again the common part is what it was."""
    document = a_group(source)

    found = converted(document, target)

    (group,) = found.groups
    assert group["apiVersion"] == FORMATS[target].versions[0]
    assert (group["metadata"]["name"], group["metadata"]["namespace"]) == ("train", "lab")
    assert "uid" not in group["metadata"]
    assert "status" not in group
    lines = [each for each in found.report if each.source]
    assert len({each.source for each in lines}) == len(lines)
    assert all(each.sentence for each in lines)
    common = set(FORMATS[source].fields) & set(FORMATS[target].fields)
    kept = [each for each in lines if each.change in (FieldChange.KEPT, FieldChange.RENAMED)]
    assert len(kept) == len(common)

    (back,) = converted(dict(group), source).groups
    (again,) = converted(dict(back), target).groups
    assert again == group


def test_a_group_of_volcano_in_the_core_api() -> None:
    """As kubectl applies it."""
    found = converted(a_group("scheduling.volcano.sh"), "scheduling.k8s.io")

    assert found.groups == (
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "train", "namespace": "lab"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 4}}, "priorityClassName": "high"},
        },
    )
    said = {each.source or each.target: each.sentence for each in found.report}
    assert said["pods"] == (
        "Pods name the group by spec.schedulingGroup.podGroupName, and no longer by annotation "
        "scheduling.k8s.io/group-name."
    )
    assert said["spec.minTaskMember"].startswith("Members are counted together")
    assert said["spec.queue"].startswith("Pods name their queue in the label plimsoll.dev/queue")


def test_a_group_of_kai_keeps_its_levels() -> None:
    """The preferred one as an annotation: the core API has no field for it."""
    (group,) = converted(a_group("scheduling.run.ai"), "scheduling.k8s.io").groups

    assert group["spec"]["schedulingConstraints"] == {"topology": [{"key": "rack"}]}
    assert group["metadata"]["annotations"] == {"plimsoll.dev/preferred-topology": "host"}


def test_a_group_without_a_minimum_is_no_gang() -> None:
    (group,) = converted(
        {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}},
        "scheduling.k8s.io",
    ).groups

    assert group["spec"] == {"schedulingPolicy": {"basic": {}}}


@pytest.mark.parametrize(
    ("document", "target", "sentence"),
    [
        (
            {"apiVersion": "example.com/v1"},
            "plimsoll.dev",
            "apiVersion of PodGroup is example.com/v1; convert",
        ),
        (
            {"apiVersion": "plimsoll.dev/v1alpha1", "metadata": {"name": "g"}},
            "plimsoll.dev",
            "it is a PodGroup of plimsoll.dev already; give --groups-as one of scheduling.k8s.io,",
        ),
        ({"apiVersion": "scheduling.run.ai/v2alpha2"}, "plimsoll.dev", "metadata.name: a name is required"),
        (
            {
                "apiVersion": "scheduling.run.ai/v2alpha2",
                "metadata": {"name": "g"},
                "spec": {"minMember": "many"},
            },
            "plimsoll.dev",
            "spec.minMember: ",
        ),
    ],
)
def test_what_cannot_be_converted_is_said(document: dict[str, Any], target: str, sentence: str) -> None:
    with pytest.raises(MigrationError) as caught:
        converted({"kind": "PodGroup", **document}, target)

    assert sentence in str(caught.value)
