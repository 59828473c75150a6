"""An operator's suite: schema, children, finalizers, trouble."""

from contextlib import ExitStack

import pytest

from roadstead.clients import ApiError

#: What the operator requests from the server while a database is made and deleted, besides its watch.
REQUESTS = [
    ("PATCH", "databases"),
    ("PATCH", "databases/status"),
    ("POST", "persistentvolumeclaims"),
    ("POST", "jobs"),
    ("GET", "jobs"),
    ("POST", "deployments"),
]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        (
            {"engine": "oracle"},
            'spec.engine: Unsupported value: "oracle": supported values: "postgres", "mysql"',
        ),
        ({"version": "v1"}, "spec.version in body should match '^[0-9]+$'"),
        ({"replicas": 2}, "replicas must be odd"),
        ({"size": "large"}, "spec.size"),
    ],
)
def test_the_schema_refuses(namespace, spec, message):
    with pytest.raises(ApiError) as refused:
        namespace.database(**spec)
    assert message in str(refused.value)


def test_a_webhook_refuses_a_reserved_word(namespace):
    with pytest.raises(ApiError) as refused:
        namespace.database("template0")
    denied = (
        'admission webhook "reserved.databases.example.com" denied the request: template0 is a reserved word'
    )
    assert (refused.value.code, str(refused.value)) == (422, f"422 : {denied}")
    assert namespace.list("databases") == []


def test_a_webhook_labels_it(namespace):
    assert namespace.database(engine="mysql")["metadata"]["labels"] == {"engine": "mysql"}


def test_the_size_cannot_shrink(namespace):
    namespace.ready(size=5)
    with pytest.raises(ApiError, match="size cannot shrink"):
        namespace.database(size=4)
    assert namespace.database(size=6)["spec"]["size"] == 6


def test_defaults_are_set_and_unknown_fields_are_dropped(namespace):
    made = namespace.cluster.request(
        "POST",
        f"/apis/example.com/v1/namespaces/{namespace.name}/databases",
        {"metadata": {"name": "main"}, "spec": {"size": 1, "colour": "red"}},
    )
    assert made["spec"] == {"size": 1, "engine": "postgres", "replicas": 1, "backup": False}


def test_kubectl_shows_the_columns(namespace):
    namespace.ready()
    (line,) = namespace.cluster.kubectl("get", "db", "-n", namespace.name, "--no-headers").splitlines()
    assert line.split() == ["main", "postgres", "Ready"]


def test_a_job_initializes_it(namespace):
    namespace.ready()
    assert namespace.get("jobs/main-init")["status"]["succeeded"] == 1


def test_a_job_that_fails_makes_it_fail(namespace):
    namespace.database(failing=True)
    failed = namespace.wait(
        "databases/main", until=lambda one: one.get("status", {}).get("phase") == "Failed"
    )
    assert failed["status"]["message"] == "main-init failed"


def test_its_pods_run_with_a_volume(namespace):
    namespace.ready(size=3)
    namespace.wait("deployments/main", condition="Available")
    claim = namespace.wait("pvc/main", until=lambda one: one["status"]["phase"] == "Bound")
    assert claim["status"]["capacity"] == {"storage": "3Gi"}


def test_it_is_scaled(namespace):
    namespace.ready()
    namespace.database(replicas=3)
    namespace.wait("databases/main", until=lambda one: one["status"].get("replicas") == 3)
    namespace.wait("deployments/main", until=lambda one: one.get("status", {}).get("readyReplicas") == 3)


def test_a_conflict_is_tried_again(namespace):
    namespace.ready()
    with namespace.faults.refuse("PUT", "deployments", status=409, times=2) as fault:
        namespace.database(replicas=3)
        namespace.wait("databases/main", until=lambda one: one["status"].get("replicas") == 3)
        assert fault.hits == 2


def test_its_volume_goes_with_it(namespace):
    namespace.ready()
    claim = namespace.wait("pvc/main", until=lambda one: one["spec"].get("volumeName"))
    namespace.delete("databases/main")
    namespace.gone("databases/main")
    namespace.gone("pvc/main")
    namespace.gone(f"pv/{claim['spec']['volumeName']}")


def test_a_claim_in_use_stays(namespace):
    namespace.ready()
    namespace.wait("deployments/main", condition="Available")
    namespace.delete("pvc/main")
    assert namespace.get("pvc/main")["metadata"]["deletionTimestamp"]
    namespace.delete("deployments/main")
    namespace.gone("pvc/main")


def test_it_is_backed_up_before_it_goes(namespace):
    namespace.ready(backup=True)
    namespace.delete("databases/main")
    namespace.gone("databases/main")
    assert namespace.get("jobs/main-backup")["status"]["succeeded"] == 1


def test_the_finalizer_keeps_it_meanwhile(namespace):
    namespace.ready(backup=True)
    with namespace.faults.refuse("POST", "jobs", status=503):
        namespace.delete("databases/main")
        kept = namespace.get("databases/main")
        assert kept["metadata"]["finalizers"] == ["example.com/backup"]
    namespace.gone("databases/main")


def test_what_is_there_is_adopted_after_a_conflict(namespace):
    with namespace.faults.drop("POST", "jobs", times=1, takes_effect=True) as fault:
        namespace.ready()
        assert fault.hits == 1
    assert [one["metadata"]["name"] for one in namespace.list("jobs")] == ["main-init"]


@pytest.mark.parametrize("status", [429, 500, 504])
def test_a_refused_status_is_written_again(namespace, status):
    with namespace.faults.refuse("PATCH", "*", status=status, times=1, namespace=namespace.name) as fault:
        namespace.ready()
        assert fault.hits == 1


@pytest.mark.parametrize("takes_effect", [True, False])
def test_each_request_may_lose_its_answer(namespace, takes_effect):
    with ExitStack() as stack:
        faults = [
            stack.enter_context(
                namespace.faults.drop(
                    method, resource, times=1, takes_effect=takes_effect, namespace=namespace.name
                )
            )
            for method, resource in REQUESTS
        ]
        namespace.ready(backup=True)
        namespace.delete("databases/main")
        namespace.gone("databases/main")
        assert [fault.hits for fault in faults] == [1] * len(REQUESTS)


def test_a_late_answer_is_awaited(namespace):
    with namespace.faults.delay("*", "jobs", seconds=0.3, namespace=namespace.name):
        namespace.ready()


def test_cut_watches_resume(namespace):
    assert namespace.faults.cut_watches("databases")
    namespace.ready()


def test_an_expired_version_is_listed_again(namespace):
    namespace.faults.expire("databases")
    namespace.ready()


def test_a_restart_of_the_server_is_survived(namespace):
    namespace.database()
    namespace.faults.restart(down_s=0.3)
    namespace.wait("databases/main", condition="Ready")


def test_a_quota_is_waited_for(namespace):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    namespace.cluster.apply(
        {**quota, "spec": {"hard": {"requests.storage": "1Gi"}}}, namespace=namespace.name
    )
    namespace.wait("quota/none", until=lambda one: one.get("status", {}).get("used"))
    namespace.database(size=2)
    namespace.wait(
        "databases/main", until=lambda one: "exceeded quota" in str(one["metadata"].get("annotations", ""))
    )
    namespace.delete("quota/none")
    namespace.wait("databases/main", condition="Ready")


def test_its_namespace_is_deleted(namespace):
    namespace.ready(backup=True)
    namespace.wait("deployments/main", condition="Available")
    namespace.cluster.delete(f"namespaces/{namespace.name}")
    namespace.cluster.wait_for_deletion(f"namespaces/{namespace.name}", timeout_s=60)
    namespace.cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace.name}})
