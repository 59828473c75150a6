"""Dumps of kubectl: Lists, single objects, several files and folders, JSON and YAML."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.snapshots.errors import SnapshotError
from plimsoll.snapshots.reader import read

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u-n1"}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "x", "uid": "u-a"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "x"}}
READING = {
    "apiVersion": "metrics.k8s.io/v1beta1",
    "kind": "PodMetrics",
    "metadata": {"name": "a", "namespace": "x"},
    "timestamp": "2026-01-01T00:00:00Z",
    "containers": [{"usage": {"cpu": "1500u", "memory": "1Mi"}}],
}
LIST = {"apiVersion": "v1", "kind": "List", "items": [NODE, POD, SECRET]}


def names(content: Any) -> dict[str, list[str]]:
    """Names of objects by plural."""
    return {
        plural: [json.loads(each)["metadata"]["name"] for each in found]
        for plural, found in content.objects.items()
    }


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(LIST),
        yaml.safe_dump(LIST),
        yaml.safe_dump_all([NODE, POD]),
        yaml.safe_dump_all([NODE, None, POD]),
        f"{json.dumps(NODE)}\n{json.dumps(POD)}\n",
        json.dumps([NODE, POD]),
    ],
    ids=["json-list", "yaml-list", "yaml-documents", "yaml-empty-document", "json-lines", "json-array"],
)
def test_the_shapes_that_tools_print(tmp_path: Path, text: str) -> None:
    """Kinds that no decision reads are left out."""
    path = tmp_path / "dump"
    path.write_text(text)

    assert names(read([path])) == {"nodes": ["n1"], "pods": ["a"]}


def test_several_files_a_folder_and_standard_input(tmp_path: Path) -> None:
    """A folder is read to its depths, as ``kubectl cluster-info dump`` writes it."""
    (tmp_path / "x").mkdir()
    bare = {key: value for key, value in POD.items() if key == "metadata"}
    (tmp_path / "x" / "pods.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [bare]})
    )
    (tmp_path / "x" / "log.txt").write_text("not read")
    (tmp_path / "nodes.yaml.gz").write_bytes(gzip.compress(yaml.safe_dump(NODE).encode()))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}

    content = read([tmp_path, "-"], io.BytesIO(json.dumps(namespace).encode()))

    assert names(content) == {"nodes": ["n1"], "pods": ["a"], "namespaces": ["x"]}
    assert content.missing["csinodes"] == "the files have none"
    assert content.taken > 1_700_000_000


def test_the_same_object_twice_counts_once_as_the_later_file_has_it(tmp_path: Path) -> None:
    """Dumps overlap: ``kubectl get pods`` and ``kubectl get all``."""
    (tmp_path / "1.json").write_text(json.dumps(POD))
    (tmp_path / "2.json").write_text(json.dumps({**POD, "spec": {"nodeName": "n1"}}))

    (pod,) = read([tmp_path]).objects["pods"]

    assert json.loads(pod)["spec"] == {"nodeName": "n1"}


def test_manifests_get_the_uid_and_namespace_that_a_server_gives(tmp_path: Path) -> None:
    """Two pods without uid are two pods."""
    path = tmp_path / "pods.yaml"
    path.write_text(
        yaml.safe_dump_all(
            [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}} for name in ("a", "b")]
        )
    )

    found = [json.loads(each)["metadata"] for each in read([path]).objects["pods"]]

    assert [each["namespace"] for each in found] == ["default", "default"]
    assert len({each["uid"] for each in found}) == 2


def test_kinds_of_other_groups_are_not_taken_for_ours(tmp_path: Path) -> None:
    """Knative has Services, policy/v1 has Evictions."""
    path = tmp_path / "dump.json"
    foreign = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "s"}}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "e"}}
    path.write_text(json.dumps([NODE, foreign, eviction]))

    assert names(read([path])) == {"nodes": ["n1"]}


def test_readings_of_the_metrics_api_are_usage(tmp_path: Path) -> None:
    """``kubectl get --raw /apis/metrics.k8s.io/v1beta1/pods``."""
    item = {
        "metadata": {"name": "a", "namespace": "x"},
        "timestamp": "2026-01-01T00:00:00Z",
        "containers": [{"usage": {"cpu": "1500u", "memory": "1Mi"}}, {"usage": {"cpu": "1m", "memory": "0"}}],
    }
    listed = {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": [item]}
    path = tmp_path / "dump.json"
    path.write_text(json.dumps([NODE, listed]))

    (reading,) = read([path]).usage.pods

    assert (reading.name, reading.usage["cpu"]) == ("x/a", 2_500_000)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"kind": "List", "items": [', "not JSON, or truncated"),
        (json.dumps(SECRET), "no object that scheduling reads (only 1 Secret)"),
        (json.dumps([READING, SECRET]), "no object that scheduling reads (only 1 Secret)"),
        (json.dumps(READING), "no object that scheduling reads; kubectl get"),
        ('{"a": 1}', 'no "kind"'),
        ("[1]", "no Kubernetes object"),
        ('{"kind": 7}', "no Kubernetes object"),
        ("[" * 100_000, "nested too deeply"),
        ("- " * 5_000 + "x", "more than 100 levels deep"),
        ("x: [" * 50_000, "more than 100 levels deep"),
        ("just words", "no Kubernetes object"),
        ("a: &x [1]\nb: *x", "alias (*x)"),
        ("kind: !!python/object/apply:os.system [touch evil]", "could not determine a constructor"),
        ("a: b: c", "in line 1"),
        (json.dumps([{**POD, "metadata": {"name": "../a"}}]), "no API server accepts"),
        (json.dumps([POD, {**POD, "metadata": {**POD["metadata"], "uid": "other"}}]), "different uids"),  # type: ignore[dict-item]
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: 7}", "no object with a name"),
    ],
)
def test_other_files_end_in_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    """Naming the file and what is wrong with it."""
    path = tmp_path / "dump"
    path.write_text(text)

    with pytest.raises(SnapshotError) as caught:
        read([path])

    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [("none.json", "No such file"), ("/dev/null", "it is no file"), ("", "no file that ends with")],
)
def test_paths_that_cannot_be_read_are_named(tmp_path: Path, name: str, said: str) -> None:
    """Missing, a device, an empty folder."""
    with pytest.raises(SnapshotError, match=said):
        read([tmp_path / name])
