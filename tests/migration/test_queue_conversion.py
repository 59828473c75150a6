"""Queues of Kueue, Volcano and KAI as those of one policy, and sentences for what they cannot say here."""

from typing import Any

import pytest

from migration.checks import CHECKS, PLUGINS
from plimsoll.migration.conversion import ConvertedFiles, convert_documents
from plimsoll.migration.documents import MigrationError, SourceDocument
from plimsoll.migration.queue_conversion import GPU
from plimsoll.migration.report import FieldChange


def document(kind: str, version: str, name: str, **spec: Any) -> SourceDocument:
    metadata = {"name": name, "namespace": "shop"}
    body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
    return SourceDocument("queues.yaml", body, {})


def converted(*documents: SourceDocument) -> tuple[dict[str, Any], ConvertedFiles]:
    found = convert_documents(documents, CHECKS, PLUGINS, keep_behaviour=False)
    (policy,) = found.policies
    fair = policy["spec"]["scheduling"]["fairShare"]
    assert fair["reclaim"] == "AboveDeserved"
    return {each["name"]: {**each, "name": ""} for each in fair["queues"]}, found


def flavor(name: str, *resources: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "resources": list(resources)}


def test_queues_of_kueue() -> None:
    """Amounts of two flavors are added; one without a borrowing limit has no ceiling."""
    kueue = "kueue.x-k8s.io/v1beta1"
    cpu = {"name": "cpu", "nominalQuota": "4", "borrowingLimit": "500m"}
    gpu = {"name": GPU, "nominalQuota": 8, "borrowingLimit": 4, "lendingLimit": 2}
    groups = [{"flavors": [flavor("spot", cpu, gpu), flavor("on-demand", {**cpu, "nominalQuota": 1})]}]
    free = [{"flavors": [flavor("any", {"name": "memory", "nominalQuota": "2Gi"})]}]
    memory = {"name": "memory", "nominalQuota": "2Gi", "borrowingLimit": "1Gi"}
    capped = [{"flavors": [flavor("any", memory)]}]
    queues, found = converted(
        document(
            "ClusterQueue", kueue, "a", cohort="team", resourceGroups=groups, fairSharing={"weight": "2"}
        ),
        document("ClusterQueue", kueue, "b", cohort="all", resourceGroups=free, stopPolicy="Hold"),
        document("ClusterQueue", kueue, "alone", resourceGroups=free, fairSharing={"weight": "0.5"}),
        document("LocalQueue", kueue, "mine", clusterQueue="a"),
        document("Cohort", kueue, "team", parentName="all", resourceGroups=capped),
    )

    assert queues == {
        "all": {"name": "", "guaranteed": {"cpu": "5000m", GPU: "8", "memory": str(4 << 30)}},
        "team": {
            "name": "",
            "parent": "all",
            "guaranteed": {"cpu": "5000m", GPU: "8", "memory": str(2 << 30)},
        },
        "a": {
            "name": "",
            "parent": "team",
            "weight": 2,
            "guaranteed": {"cpu": "5000m", GPU: "8"},
            "capability": {"cpu": "6000m", GPU: "12"},
        },
        "b": {"name": "", "parent": "all", "guaranteed": {"memory": str(2 << 30)}},
        "alone": {
            "name": "",
            "weight": 1,
            "guaranteed": {"memory": str(2 << 30)},
            "capability": {"memory": str(2 << 30)},
        },
    }
    told = {(each.change, each.source.rpartition(".")[2]) for each in found.report}
    weights = [
        each.change is FieldChange.DEFAULT_DIFFERS for each in found.report if each.source.endswith("weight")
    ]
    assert weights == [False, True]
    for field in ("lendingLimit", "stopPolicy", "name", "borrowingLimit"):
        assert (FieldChange.NO_COUNTERPART, field) in told
    assert (FieldChange.DEFAULT_DIFFERS, "weight") in told
    assert any("label plimsoll.dev/queue: a instead" in each.sentence for each in found.report)


def test_queues_of_volcano() -> None:
    """The root is no queue; what is deserved goes before what is guaranteed."""
    volcano = "scheduling.volcano.sh/v1beta1"
    queues, _ = converted(
        document("Queue", volcano, "a", weight=3, parent="root", capability={"cpu": 8}, reclaimable=False),
        document("Queue", volcano, "b", parent="a", guarantee={"resource": {"cpu": "2"}}),
        document("Queue", volcano, "c", deserved={"cpu": "3"}, guarantee={"resource": {"cpu": "2"}}),
    )

    assert queues == {
        "a": {"name": "", "weight": 3, "capability": {"cpu": "8"}, "reclaimable": False},
        "b": {"name": "", "parent": "a", "guaranteed": {"cpu": "2"}},
        "c": {"name": "", "guaranteed": {"cpu": "3"}},
    }


def test_queues_of_kai() -> None:
    """Cpu is in milli, memory in megabytes, -1 no limit."""
    resources = {
        "cpu": {"quota": 1500, "limit": -1, "overQuotaWeight": 1},
        "memory": {"quota": -1, "limit": 1000, "overQuotaWeight": 1},
        "gpu": {"quota": 4, "limit": 0, "overQuotaWeight": 2},
    }
    more = {"reclaimMinRuntime": "1h30m", "preemptMinRuntime": "5m"}
    queues, found = converted(
        document("Queue", "scheduling.run.ai/v2", "a", parentQueue="all", resources=resources, **more)
    )

    assert queues["a"] == {
        "name": "",
        "parent": "all",
        "weight": 2,
        "guaranteed": {"cpu": "1500m", GPU: "4"},
        "capability": {"memory": "1000000000", GPU: "0"},
        "reclaimMinRuntimeSeconds": 5400,
    }
    assert any("one weight for all resources" in each.sentence for each in found.report)
    said = {
        each.source.rpartition("resources.")[2]: each.sentence
        for each in found.report
        if GPU in each.sentence
    }
    assert said == {
        "gpu.quota": f"Written as guaranteed of {GPU}.",
        "gpu.limit": f"Written as capability of {GPU}.",
    }


@pytest.mark.parametrize(
    ("documents", "told"),
    [
        ([document("Queue", "example.com/v1", "a")], "apiVersion of Queue is example.com/v1; convert reads"),
        ([document("Queue", "scheduling.run.ai/v2", "")], "a name is required"),
        ([document("Queue", "scheduling.run.ai/v2", "a")] * 2, "two queues have the name a; rename one"),
        ([document("Queue", "scheduling.volcano.sh/v1beta1", "a", weight="x")], "cannot be read"),
        ([document("Queue", "scheduling.run.ai/v2", "a", reclaimMinRuntime="5d")], "cannot be read"),
        ([document("Queue", "scheduling.volcano.sh/v1beta1", "a", parent="a")], "below itself"),
    ],
)
def test_what_cannot_be_is_refused(documents: list[SourceDocument], told: str) -> None:
    """Nothing is written."""
    with pytest.raises(MigrationError, match=told):
        convert_documents(documents, CHECKS, PLUGINS, keep_behaviour=False)
