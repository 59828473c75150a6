"""The fixtures of the pytest plugin and the methods of a running cluster."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from roadstead.clients import ApiError, RunningCluster
from roadstead.cluster import DevCluster
from roadstead.pytest_plugin import StartRoadstead

WIDGETS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wi"]},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
                "subresources": {"status": {}},
            }
        ],
    },
}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 1}}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"nodeName": "node-0001", "containers": [{"name": "main", "image": "app:1"}]},
        },
    },
}


def test_applies_files_and_objects(roadstead: RunningCluster, tmp_path: Path) -> None:
    """A definition and its objects may stand in one call, a namespace is a parameter, and again changes."""
    file = tmp_path / "widgets.yaml"
    file.write_text(yaml.safe_dump_all([WIDGETS, WIDGET]))

    roadstead.apply(file)
    roadstead.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    roadstead.apply({**WIDGET, "spec": {"size": 2}}, namespace="other")
    roadstead.apply({**WIDGET, "spec": {"size": 3}})

    for name in ("widgets", "widget", "wi", "Widget", "widgets.example.com"):
        assert roadstead.get(f"{name}/one")["spec"] == {"size": 3}
    assert [one["spec"]["size"] for one in roadstead.list("widgets")] == [3, 2]
    assert [one["spec"]["size"] for one in roadstead.list("widgets", "other")] == [2]


def test_waits_for_a_condition(roadstead: RunningCluster) -> None:
    """A Deployment becomes Available, and its pods are found by label."""
    roadstead.apply(DEPLOYMENT)

    ready = roadstead.wait_for(
        "deploy/web", condition="Available", until=lambda one: one["status"]["replicas"]
    )

    assert ready["status"]["readyReplicas"] == 1
    assert len(roadstead.list("pods", "default", labels="app=web")) == 1
    assert roadstead.list("pods", "default", labels="app=other") == []


def test_says_what_it_waited_for_in_vain(roadstead: RunningCluster) -> None:
    """The object's state, or that it is not there."""
    roadstead.apply({**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "paused": True}})

    roadstead.wait_for("deploy/web", until=lambda one: one.get("status", {}).get("conditions"))

    with pytest.raises(TimeoutError, match=r'"type": "Progressing", "status": "Unknown"'):
        roadstead.wait_for("deploy/web", condition="Available", timeout_s=0.5)
    with pytest.raises(TimeoutError, match="404 NotFound"):
        roadstead.wait_for("deploy/other", timeout_s=0.1)
    with pytest.raises(TimeoutError, match="no resource is called gadgets"):
        roadstead.wait_for("gadgets/one", timeout_s=0.1)
    with pytest.raises(TimeoutError, match="still there"):
        roadstead.wait_for_deletion("deploy/web", timeout_s=0.1)


def test_deletes_and_waits_for_the_end(roadstead: RunningCluster) -> None:
    """What has a finalizer stays until it is taken off."""
    roadstead.apply(WIDGETS, {**WIDGET, "metadata": {"name": "one", "finalizers": ["example.com/stays"]}})
    roadstead.delete("widgets/one")

    assert roadstead.get("widgets/one")["metadata"]["deletionTimestamp"]
    roadstead.kubectl("patch", "wi", "one", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    roadstead.wait_for_deletion("widgets/one")


def test_refusals_say_why(roadstead: RunningCluster) -> None:
    """The code, the reason and the message of the Status."""
    with pytest.raises(ApiError, match=r'404 NotFound: pods "none" not found') as missing:
        roadstead.get("pods/none")
    with pytest.raises(ApiError, match="Invalid value") as invalid:
        roadstead.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "Not_A_Name"}})

    assert (missing.value.code, missing.value.reason) == (404, "NotFound")
    assert invalid.value.code == 422


def test_kubectl_says_why_it_failed(roadstead: RunningCluster) -> None:
    """In the message of the exception, which pytest shows."""
    with pytest.raises(subprocess.CalledProcessError, match='pods "none" not found'):
        roadstead.kubectl("get", "pod", "none")


def test_options_of_the_session_can_be_overridden(pytester: pytest.Pytester) -> None:
    """With those of the command; by default there are a scheduler and a storage class."""
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="session")
        def roadstead_options(roadstead_options):
            return {**roadstead_options, "nodes": 1, "scheduler": False, "controllers": "*,-job"}

        def test_options(roadstead):
            assert [one["metadata"]["name"] for one in roadstead.list("nodes")] == ["node-0001"]
            assert [one["metadata"]["name"] for one in roadstead.list("sc")] == ["standard"]
        """
    )

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    result.assert_outcomes(passed=1)


def test_each_test_begins_with_an_empty_cluster(pytester: pytest.Pytester) -> None:
    """Also in a project whose tests leave everything behind; the cluster is one for all of them."""
    pytester.makepyfile(
        f"""
        import pytest

        WIDGETS = {WIDGETS!r}

        @pytest.mark.parametrize("number", range(3))
        def test_leaves_things(roadstead, roadstead_process, number):
            assert roadstead is roadstead_process
            assert [one["metadata"]["name"] for one in roadstead.list("namespaces")] == [
                "default", "kube-node-lease", "kube-public", "kube-system",
            ]
            assert [one["metadata"]["name"] for one in roadstead.list("nodes")] == [
                "node-0001", "node-0002", "node-0003",
            ]
            assert roadstead.list("crd") == []
            left = {{"apiVersion": "v1", "kind": "Namespace", "metadata": {{"name": "left"}}}}
            roadstead.apply(WIDGETS, left)
            roadstead.delete("nodes/node-0002")
        """
    )

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    result.assert_outcomes(passed=3)


def test_a_cluster_that_is_given_is_left_as_it_was(
    pytester: pytest.Pytester, start_roadstead: StartRoadstead
) -> None:
    """What tests have created with ``apply`` goes before the next test; what was there stays."""
    given = start_roadstead(nodes=2)
    given.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "theirs"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}},
    )
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", range(2))
        def test_leaves_a_namespace(roadstead, number):
            assert not roadstead.simulated
            names = [one["metadata"]["name"] for one in roadstead.list("namespaces")]
            assert names == ["default", "kube-node-lease", "kube-public", "kube-system", "theirs"]
            roadstead.apply(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "left"}},
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"a": "b"}},
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "another"}},
            )
            assert len(roadstead.list("nodes")) == 3
            roadstead.kubectl("get", "nodes")
        """
    )

    result = pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "--roadstead-kubeconfig", str(given.kubeconfig)
    )

    result.assert_outcomes(passed=2)
    assert given.get("namespaces/theirs")["status"]["phase"] == "Active"
    assert given.get("configmaps/theirs")["data"] == {"a": "b"}
    assert len(given.list("nodes")) == 2
    with pytest.raises(ApiError, match="404"):
        given.get("namespaces/left")


async def test_a_cluster_in_the_loop_of_the_test(roadstead_in_process: DevCluster) -> None:
    """Reads and writes without HTTP, and a session."""
    roadstead_in_process.api.create("configmaps", {"metadata": {"name": "mine", "namespace": "default"}})

    async with (
        roadstead_in_process.session() as session,
        session.get("/api/v1/namespaces/default/configmaps/mine") as answer,
    ):
        assert answer.status == 200

    assert len(roadstead_in_process.api.list("nodes")) == 3


def test_options_of_further_clusters(start_roadstead: StartRoadstead) -> None:
    """Words, numbers and switches of the command."""
    cluster = start_roadstead(nodes=1, node_cpu="500m", controllers=False, heartbeats=True)
    cluster.apply(DEPLOYMENT)

    assert cluster.get("nodes/node-0001")["status"]["capacity"]["cpu"] == "500m"
    with pytest.raises(TimeoutError):
        cluster.wait_for("deploy/web", condition="Available", timeout_s=0.3)


def test_a_cluster_that_does_not_start_says_why(start_roadstead: StartRoadstead) -> None:
    """The output of the command is in the message."""
    with pytest.raises(Exception, match="no quantity"):
        start_roadstead(nodes=1, node_cpu="lots")


def test_loads_nothing_before_it_is_used(pytester: pytest.Pytester) -> None:
    """A run without clusters pays nothing for the plugin."""
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            loaded = {name for name in sys.modules if name.startswith("roadstead")}
            assert loaded == {"roadstead", "roadstead.pytest_plugin"}
        """
    )

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    result.assert_outcomes(passed=1)
