"""Changes of objects and of their status, as kube-apiserver 1.36.2 answers them."""

from typing import Any

import pytest

from roadstead.assembly import built_in_api
from roadstead.store.api import Api, Write
from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "c", "image": "x:1"}]},
}
SELECTOR = {"matchLabels": {"app": "a"}}
PLAIN, STATUS = Write(), Write(subresource="status")


@pytest.fixture
def api() -> Api:
    """An empty cluster."""
    return built_in_api()


def created(api: Api, resource: str, **obj: Any) -> Any:
    meta = {"name": "it", "namespace": "default", **obj.pop("metadata", {})}
    return copied(api.create(resource, {"metadata": meta, **obj}))


def causes(api: Api, resource: str, obj: Any, how: Write = PLAIN) -> set[str]:
    """Why an update is refused; nothing where it is let through."""
    try:
        api.update(resource, obj, how)
    except StatusError as error:
        return {
            f"{one['reason'].removeprefix('FieldValue')} {one['field']}" for one in error.details["causes"]
        }
    return set()


def pod(api: Api, **spec: Any) -> Any:
    return created(api, "pods", spec={"containers": [{"name": "c", "image": "x:1"}], **spec})


def test_what_admission_added_to_a_pod_need_not_be_repeated(api: Any) -> None:
    """Tolerations and priority are added again where an update leaves them out."""
    one = pod(api)
    for field in ("tolerations", "priority", "preemptionPolicy"):
        del one["spec"][field]

    assert not causes(api, "pods", one)
    assert len(api.get("pods", "default", "it")["spec"]["tolerations"]) == 2
    assert api.get("pods", "default", "it")["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"hostname": "other"}, {"Forbidden spec"}),
        ({"hostname": "Not A Label"}, {"Forbidden spec", "Invalid spec.hostname"}),
        ({"containers": []}, {"Required spec.containers", "Forbidden spec.containers"}),
        ({"activeDeadlineSeconds": 5}, set()),
        ({"schedulingGates": [{"name": "late"}]}, {"Forbidden spec.schedulingGates[0].name"}),
        ({"tolerations": []}, {"Forbidden spec.tolerations"}),
    ],
)
def test_of_a_pod_hardly_anything_may_change(api: Any, change: Any, expected: Any) -> None:
    """One answer has all causes."""
    one = pod(api, tolerations=[{"key": "a", "operator": "Exists"}])
    one["spec"].update(change)

    assert causes(api, "pods", one) == expected


def test_a_pod_that_has_ended_stays_ended(api: Any) -> None:
    """Where its restart policy does not bring it back."""
    ended = {"name": "c", "image": "x:1", "imageID": "", "ready": False, "restartCount": 0}
    one = pod(api, restartPolicy="Never")
    one["status"]["containerStatuses"] = [{**ended, "state": {"terminated": {"exitCode": 0}}}]
    one = copied(api.update("pods", one, STATUS))
    one["status"]["containerStatuses"][0]["state"] = {"running": {}}

    assert causes(api, "pods", one, STATUS) == {"Forbidden status.containerStatuses[0].state"}


def test_one_address_of_a_pod_is_all_of_them(api: Any) -> None:
    """``podIP`` stands in ``podIPs``, too, and must be an address."""
    one = pod(api)
    one["status"]["podIP"] = "10.0.0.1"
    assert api.update("pods", one, STATUS)["status"]["podIPs"] == [{"ip": "10.0.0.1"}]

    other = copied(api.get("pods", "default", "it"))
    other["status"] = {"podIP": "nowhere", "qosClass": "BestEffort"}
    assert causes(api, "pods", other, STATUS) == {"Invalid status.podIPs[0]"}


def test_a_deletion_that_has_not_begun_is_not_written(api: Any) -> None:
    """An update cannot set the time of deletion."""
    one = created(api, "configmaps")
    one["metadata"] |= {"deletionTimestamp": "2024-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3}

    refused = {"Invalid metadata.deletionTimestamp", "Invalid metadata.deletionGracePeriodSeconds"}
    assert causes(api, "configmaps", one) == refused


def test_a_budget_is_not_replaced_without_a_version(api: Any) -> None:
    """As a Lease; other kinds are overwritten."""
    one = created(api, "poddisruptionbudgets.policy", spec={"minAvailable": 1})
    del one["metadata"]["resourceVersion"]

    assert causes(api, "poddisruptionbudgets.policy", one) == {"Invalid metadata.resourceVersion"}


def test_a_version_must_be_a_number(api: Any) -> None:
    """And 0 means none."""
    one = created(api, "configmaps")
    one["metadata"]["resourceVersion"] = "0"
    api.update("configmaps", one)

    one["metadata"]["resourceVersion"] = "newest"
    with pytest.raises(StatusError) as refused:
        api.update("configmaps", one)
    assert refused.value.code == 500


def test_counts_of_a_status_fit_together(api: Any) -> None:
    """Parts are not more than the whole, and none is below zero."""
    one = created(api, "replicasets.apps", spec={"selector": SELECTOR, "template": TEMPLATE})
    one["status"] = {"replicas": 1, "readyReplicas": 2, "availableReplicas": -1}

    assert causes(api, "replicasets.apps", one, STATUS) == {
        "Invalid status.readyReplicas",
        "Invalid status.availableReplicas",
    }


def test_the_status_of_a_deployment_takes_no_labels(api: Any) -> None:
    """Labels are written with the deployment itself."""
    spec = {"selector": SELECTOR, "template": TEMPLATE}
    one = created(api, "deployments.apps", metadata={"labels": {"a": "b"}}, spec=spec)
    one["metadata"]["labels"] = {"c": "d"}

    assert api.update("deployments.apps", one, STATUS)["metadata"]["labels"] == {"a": "b"}


def job(api: Api, **spec: Any) -> Any:
    template = {"spec": {"restartPolicy": "Never", **TEMPLATE["spec"]}}
    return created(api, "jobs.batch", spec={"template": template, **spec})


def test_a_job_has_the_labels_of_its_pods(api: Any) -> None:
    """Where it has none of its own."""
    one = job(api)

    assert one["metadata"]["labels"] == one["spec"]["template"]["metadata"]["labels"]


def test_a_suspended_job_may_go_elsewhere_and_ask_for_more(api: Any) -> None:
    """Before any of its pods ran; what they run stays."""
    one = job(api, suspend=True)
    pod_spec = one["spec"]["template"]["spec"]
    pod_spec["nodeSelector"] = {"zone": "a"}
    pod_spec["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    assert not causes(api, "jobs.batch", one)

    again = copied(api.get("jobs.batch", "default", "it"))
    again["spec"]["template"]["spec"]["containers"][0]["image"] = "y:1"
    assert causes(api, "jobs.batch", again) == {"Invalid spec.template.spec"}


def test_a_job_that_runs_keeps_its_template(api: Any) -> None:
    """All of it."""
    one = job(api)
    one["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "a"}

    assert causes(api, "jobs.batch", one) == {"Invalid spec.template"}


def test_a_daemon_set_counts_its_templates(api: Any) -> None:
    """In an annotation, for older clients."""
    key = "deprecated.daemonset.template.generation"
    one = created(api, "daemonsets.apps", spec={"selector": SELECTOR, "template": TEMPLATE})
    assert one["metadata"]["annotations"] == {key: "1"}

    one["spec"]["template"]["spec"]["containers"][0]["image"] = "y:1"
    assert api.update("daemonsets.apps", one)["metadata"]["annotations"] == {key: "2"}


def test_a_claim_does_not_shrink(api: Any) -> None:
    """Below what it has."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
    one = created(api, "persistentvolumeclaims", spec=spec)
    one["status"] = {"phase": "Bound", "capacity": {"storage": "2Gi"}}
    one = copied(api.update("persistentvolumeclaims", one, STATUS))
    one["spec"]["resources"]["requests"]["storage"] = "1Gi"

    assert causes(api, "persistentvolumeclaims", one) == {"Forbidden spec.resources.requests.storage"}


def test_label_keys_become_part_of_a_new_pods_selectors(api: Any) -> None:
    """For labels that the pod has, preferred terms included; later labels change nothing."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}}
    keyed = {**term, "matchLabelKeys": ["hash", "absent"], "mismatchLabelKeys": ["tenant"]}
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    anti = {
        "requiredDuringSchedulingIgnoredDuringExecution": [copied(keyed), copied(term)],
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": copied(keyed)}],
    }
    one = created(
        api,
        "pods",
        metadata={"labels": {"hash": "h1", "tenant": "t"}},
        spec={
            "containers": [{"name": "c", "image": "x:1"}],
            "affinity": {"podAntiAffinity": anti},
            "topologySpreadConstraints": [
                {**spread, "labelSelector": {}, "matchLabelKeys": ["hash"]},
                {**spread, "topologyKey": "host"},
            ],
        },
    )

    same = {"key": "hash", "operator": "In", "values": ["h1"]}
    other = {"key": "tenant", "operator": "NotIn", "values": ["t"]}
    made = one["spec"]["affinity"]["podAntiAffinity"]
    first, second = made["requiredDuringSchedulingIgnoredDuringExecution"]
    (preferred,) = made["preferredDuringSchedulingIgnoredDuringExecution"]
    assert first["labelSelector"] == {"matchLabels": {"app": "a"}, "matchExpressions": [same, other]}
    assert preferred["podAffinityTerm"]["labelSelector"] == first["labelSelector"]
    assert second["labelSelector"] == {"matchLabels": {"app": "a"}}
    keyed_spread, plain = one["spec"]["topologySpreadConstraints"]
    assert keyed_spread["labelSelector"] == {"matchExpressions": [same]}
    assert "labelSelector" not in plain

    one["metadata"]["labels"]["hash"] = "h2"
    assert not causes(api, "pods", one)
    kept = api.get("pods", "default", "it")["spec"]["topologySpreadConstraints"][0]
    assert kept["labelSelector"] == {"matchExpressions": [same]}


def test_a_label_key_that_the_selector_has_is_refused(api: Any) -> None:
    """As one requirement too many."""
    selector = {"matchExpressions": [{"key": "hash", "operator": "Exists"}]}
    term = {"topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["hash"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    with pytest.raises(StatusError, match="exists in both matchLabelKeys and labelSelector"):
        created(
            api,
            "pods",
            metadata={"labels": {"hash": "h1"}},
            spec={"containers": [{"name": "c", "image": "x:1"}], "affinity": affinity},
        )
