"""``plimsoll snapshot``: golden answers, a file that another command reads, and other files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from cli.commands import say
from cli.golden_files import check
from inspection.contents import a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.ports.usage import UsageReading
from plimsoll.snapshots import file as files
from plimsoll.snapshots.content import UsageContent
from plimsoll.snapshots.reader import read

SECRET = "hunter2"


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with cluster.json.gz: two nodes, pods of two namespaces, a good and a bad policy."""
    content = content_of(
        [
            a_node_document("n1"),
            a_node_document("n2", cpu="96", memory="384Gi"),
            a_pod_document("web-1", node="n1"),
            a_pod_document("web-2", node="n2", cpu="12500m"),
            a_pod_document("job-1", namespace="batch", owner="job", cpu="1"),
            a_policy_document(),
            a_policy_document("old", "2025-01-01T00:00:00Z", rebalancing={"strategies": [{"name": "Nope"}]}),
            {"kind": "Eviction", "metadata": {"name": "odd", "namespace": "shop"}},
        ]
    )
    usage = UsageContent((UsageReading("n1", {"cpu": 10**9, "memory": 2**30 * 10**9}, 0.0),))
    missing = {"csinodes": "the server does not have it", "deployments": "the server does not have it"}
    monkeypatch.chdir(tmp_path)
    files.save(replace(content, usage=usage, missing=missing), Path("cluster.json.gz"))
    return tmp_path


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml"])
@pytest.mark.usefixtures("scene")
def test_show(form: str) -> None:
    """Counts, utilisation, the largest namespaces, policies, what is missing and what cannot be read."""
    said = say("snapshot", "show", "cluster.json.gz", "-o", form)

    assert (said.code, said.err) == (0, "")
    check("snapshot-show", "two-nodes", form, said.out)


@pytest.mark.usefixtures("scene")
def test_save_from_a_dump_leaves_secrets_out() -> None:
    """What is saved is shown again; the file has nothing that no decision reads."""
    pod = a_pod_document("web-1", node="n1")
    pod["apiVersion"] = "v1"
    pod["metadata"]["annotations"] = {"note": SECRET}
    pod["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": SECRET}]
    Path("dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod]}))

    said = say("snapshot", "save", "saved.json.gz", "--from", "dump.json")

    assert said.code == 0, said.err
    assert said.out.startswith("saved 0 nodes, 1 pod and 0 other objects of dump.json in saved.json.gz (0.")
    (kept,) = read(["saved.json.gz"]).objects["pods"]
    assert SECRET.encode() not in kept
    assert say("snapshot", "show", "saved.json.gz").code == 0


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("exists", ("save", "cluster.json.gz", "--from", "cluster.json.gz")),
        ("no-folder", ("save", "none/cluster.json.gz", "--from", "cluster.json.gz")),
        ("missing", ("show", "none.json.gz")),
        ("truncated", ("show", "truncated.json.gz")),
        ("two-snapshots", ("show", "cluster.json.gz", "cluster.json.gz")),
    ],
)
def test_errors(case: str, words: tuple[str, ...]) -> None:
    """One line that names the file and what to do; tests of the file format have the rest."""
    Path("truncated.json.gz").write_bytes(Path("cluster.json.gz").read_bytes()[:-40])

    said = say("snapshot", *words)

    assert (said.code, said.out) == (1, "")
    check("snapshot", case, "error", said.err)


@pytest.mark.usefixtures("scene")
def test_force_overwrites() -> None:
    """And only it."""
    before = Path("cluster.json.gz").read_bytes()

    assert say("snapshot", "save", "cluster.json.gz", "--from", "cluster.json.gz").code == 1
    assert Path("cluster.json.gz").read_bytes() == before
    assert say("snapshot", "save", "cluster.json.gz", "--from", "cluster.json.gz", "--force").code == 0
    assert Path("cluster.json.gz").read_bytes() == before
