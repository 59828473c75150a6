"""Policies with parts of packages: read offline where these are installed, and said where they are not."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.test_declared_kinds import PACKAGES
from cli.commands import say
from inspection.contents import a_node_document, a_pod_document, a_policy_document
from plimsoll.policies import extensions

Document = dict[str, Any]

QUOTAS_POLICY = {"schedulerName": "quotas", "plugins": {"filter": {"enabled": [{"name": "NodeQuotas"}]}}}


def the_cluster(*more: Document) -> list[Document]:
    return [
        a_node_document("n1"),
        a_node_document("n2"),
        a_pod_document("web", schedulerName="quotas"),
        a_policy_document("quotas", scheduling=QUOTAS_POLICY),
        *more,
    ]


def a_quota(node: str, most: int) -> Document:
    return {
        "apiVersion": "example.com/v1",
        "kind": "RackQuota",
        "metadata": {"name": node, "uid": node},
        "spec": {"mostPods": most, "unread": "kept out of snapshots"},
    }


def a_config_map(labels: dict[str, str]) -> Document:
    meta = {"name": "racks", "namespace": "default", "labels": labels, "uid": "racks"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"most": "0"}}


def written(folder: Path, documents: list[Document]) -> str:
    file = folder / "cluster.json"
    file.write_bytes(msgspec.json.encode(documents))
    return str(file)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is installed on this machine."""

    def found(group: str) -> list[Any]:
        return [EntryPoint(name, value, group) for name, value in PACKAGES.get(group, {}).items()]

    monkeypatch.setattr(extensions.load, "__defaults__", (found,))
    extensions.declared_here.cache_clear()
    monkeypatch.setattr(extensions, "declared_here", extensions.declared_here)


@pytest.fixture(autouse=True)
def forget() -> Any:
    yield
    extensions.declared_here.cache_clear()


@pytest.mark.usefixtures("installed")
def test_own_objects_are_read_from_manifests_and_kept_in_snapshots(tmp_path: Path) -> None:
    """What the plugin does not declare stays out of the file."""
    documents = the_cluster(a_quota("n1", 0), a_quota("n2", 5), a_config_map({"for": "racks"}))
    dump = written(tmp_path, documents)
    saved = str(tmp_path / "saved.json.gz")

    told = say("explain", "pod", "shop/web", "--from", dump)
    kept = say("snapshot", "save", saved, "--from", dump)
    again = say("explain", "pod", "shop/web", "--from", saved)

    assert told.code == again.code == 0, told.err + kept.err + again.err
    assert "node n2" in told.out
    assert again.out.split("unknown")[0] == told.out.split("unknown")[0]


@pytest.mark.usefixtures("installed")
def test_objects_that_a_file_does_not_have_are_not_taken_for_none(tmp_path: Path) -> None:
    """A ConfigMap without the label is not one of them."""
    told = say("explain", "pod", "shop/web", "--from", written(tmp_path, the_cluster()))
    more = the_cluster(a_quota("n1", 0), a_config_map({"for": "others"}))
    unlabelled = say("explain", "pod", "shop/web", "--from", written(tmp_path, more))

    assert (told.code, unlabelled.code) == (1, 1)
    assert 'running "NodeQuotas" filter plugin: LookupError: rackquotas.example.com are not known' in told.err
    assert "LookupError: configmaps are not known" in unlabelled.err


def test_a_pod_of_a_package_that_is_not_here_is_judged_by_no_other_profile(tmp_path: Path) -> None:
    """Neither explained nor fitted by the default profile."""
    told = say("explain", "pod", "shop/web", "--from", written(tmp_path, the_cluster(a_quota("n1", 0))))

    assert told.code == 1
    assert told.out == ""
    assert 'SchedulingPolicy for schedulerName "quotas" is not known here' in told.err
    assert 'there is no plugin "NodeQuotas"' in told.err
    assert "correct the name, install its package here, or ask the operator" in told.err


def test_a_snapshot_of_a_machine_with_the_package_is_read_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Its further objects are passed over; pods of other policies are explained."""
    request.getfixturevalue("installed")
    others = [a_pod_document("other", schedulerName="default-scheduler"), a_config_map({"for": "racks"})]
    saved = str(tmp_path / "saved.json.gz")
    say("snapshot", "save", saved, "--from", written(tmp_path, the_cluster(a_quota("n1", 0), *others)))
    monkeypatch.undo()
    extensions.declared_here.cache_clear()

    assert say("explain", "pod", "shop/other", "--from", saved).code == 0
    assert say("explain", "pod", "shop/web", "--from", saved).code == 1


@pytest.mark.parametrize("accepted", ["True", "False"])
def test_a_plan_of_a_strategy_that_is_not_here_ends_with_a_code(tmp_path: Path, accepted: str) -> None:
    """The operator's own condition counts: a policy that it refuses is refused here too."""
    policy = a_policy_document("moves", rebalancing={"mode": "DryRun", "strategies": [{"name": "MyOwn"}]})
    policy["status"] = {"conditions": [{"type": "Accepted", "status": accepted}]}

    told = say("plan", "--from", written(tmp_path, [a_node_document("n1"), policy]))

    assert 'there is no strategy "MyOwn"' in told.out.replace("\n", " ")
    assert told.code == (1 if accepted == "True" else 0)
    assert ("not known here" in told.out) is (accepted == "True")
