"""``plimsoll release``: pods that are handed over, and pods that are left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from cli.commands import Said, say
from cli.refusing_server import Refusing, kubeconfig_of, refusing_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Obj = dict[str, Any]

READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Serving",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
ADOPT = {"namespaces": {"include": ["shop"]}}
RENEWED = "2999-01-01T00:00:00.000000Z"


def pod(name: str, kind: str = "ReplicaSet", owner: str = "web", uid: str = "o", **metadata: Any) -> Obj:
    """A pod that waits."""
    reference = {"kind": kind, "name": owner, "uid": uid, "controller": True}
    more = {"ownerReferences": [reference] if kind else [], **metadata}
    return {
        "metadata": {"namespace": "shop", "name": name, "uid": name, "resourceVersion": "7", **more},
        "spec": {},
    }


def owner(uid: str = "o", scheduler: str = "", failed: int = 0, limit: int = 0) -> Obj:
    """What makes pods."""
    template = {"spec": {"schedulerName": scheduler or "default-scheduler"}}
    return {
        "metadata": {"uid": uid},
        "spec": {"template": template, "backoffLimit": limit},
        "status": {"failed": failed},
    }


PODS = [
    pod("fits"),
    pod("placed"),
    pod("another"),
    pod("gone"),
    pod("busy"),
    pod("leaving", deletionTimestamp="2026-01-01T00:00:00Z"),
    pod("bare", kind=""),
    pod("odd", kind="Rollout"),
    pod("orphan", owner="old"),
    pod("again", uid="earlier"),
    pod("named", owner="named"),
    pod("last", kind="Job", owner="strict"),
    pod("retried", kind="Job", owner="patient"),
]
OWNERS = {
    "replicasets/web": owner(),
    "replicasets/named": owner(scheduler="plimsoll"),
    "jobs/strict": owner(),
    "jobs/patient": owner(failed=1, limit=2),
}
NOW: dict[str, Obj] = {
    "placed": {"spec": {"nodeName": "node-1"}},
    "another": {"metadata": {"uid": "new", "resourceVersion": "8"}},
}


class Waiting(Refusing):
    """Has pods that wait; ways are states of the policy and of the lease."""

    evicted: ClassVar[list[Obj]] = []

    def decide(self, way: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Obj]:
        """Code and body of one answer."""
        place = path.removeprefix("/apis/apps/v1/namespaces/shop/").removeprefix(
            "/apis/batch/v1/namespaces/shop/"
        )
        name = path.rpartition("/")[2]
        if path.endswith("/schedulingpolicies"):
            spec = {
                "scheduling": {"schedulerName": "plimsoll", **({"adopt": ADOPT} if way == "adopting" else {})}
            }
            document = {"metadata": {"name": "web"}, "spec": spec, "status": {"conditions": [READY]}}
            return 200, {"items": [] if way == "dead" else [document]}
        if path.endswith("/leases"):
            held = {"holderIdentity": "a_1", "leaseDurationSeconds": 15, "renewTime": RENEWED}
            lease = {"metadata": {"namespace": "plimsoll", "name": "plimsoll"}, "spec": held}
            return 200, {"items": [lease]}
        if path == "/api/v1/pods":
            assert query["fieldSelector"] == "spec.schedulerName=plimsoll,spec.nodeName="
            return 200, {"items": PODS}
        if path.endswith("/eviction"):
            if "busy" in path:
                return 429, {
                    "kind": "Status",
                    "code": 429,
                    "reason": "TooManyRequests",
                    "message": "a budget",
                }
            self.evicted.append(body)
            return 201, {}
        if place in OWNERS:
            return 200, OWNERS[place]
        found = next((each for each in PODS if each["metadata"]["name"] == name and name != "gone"), None)
        return (200, {**found, **NOW.get(name, {})}) if found else super().decide(way, path, query, body)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The server."""
    with refusing_server(Waiting) as one:
        yield one


def said_by(url: str, folder: Path, way: str, *words: str) -> Said:
    """Release pods of plimsoll."""
    kubeconfig = kubeconfig_of(folder / "config", f"{url}/{way}", namespace="shop")
    return say("release", "plimsoll", "-A", *words, KUBECONFIG=str(kubeconfig))


KEPT = {
    "bare": "it has no owner that makes it again",
    "odd": "Rollout shop/web is of a kind whose pod template is not known",
    "orphan": "ReplicaSet shop/old does not exist any more",
    "again": "ReplicaSet shop/web does not exist any more",
    "named": "ReplicaSet shop/named names the scheduler in its pod template",
    "last": "Job shop/strict counts an evicted pod as failed",
}


def test_what_would_be_evicted_is_named_and_stays(url: str, tmp_path: Path) -> None:
    said = said_by(url, tmp_path, "dead")

    lines = {line.split()[1].removeprefix("shop/"): line for line in said.out.splitlines()}
    assert not Waiting.evicted
    assert {name for name, line in lines.items() if "would be evicted" in line} == {
        "fits",
        "placed",
        "another",
        "gone",
        "busy",
        "retried",
    }
    assert "leaving" not in lines
    for name, why in KEPT.items():
        assert why in lines[name]


def test_each_pod_is_looked_at_again_before_it_is_evicted(url: str, tmp_path: Path) -> None:
    """The eviction names the version in which the pod had no node."""
    Waiting.evicted.clear()
    said = said_by(url, tmp_path, "dead", "--apply")

    assert "pod shop/fits evicted" in said.out
    assert "pod shop/placed stays: it was placed on node-1 meanwhile" in said.out
    assert "pod shop/another stays: another pod has its name" in said.out
    assert "pod shop/gone has left" in said.out
    assert "pod shop/busy stays: a budget" in said.out
    assert [each["metadata"]["name"] for each in Waiting.evicted] == ["fits", "retried"]
    assert Waiting.evicted[0]["deleteOptions"]["preconditions"] == {"uid": "fits", "resourceVersion": "7"}


@pytest.mark.parametrize(
    ("way", "why"),
    [
        ("adopting", "policy web adopts pods: new ones get schedulerName plimsoll again"),
        ("served", "policy web serves schedulerName plimsoll, and an operator leads"),
    ],
)
def test_nothing_is_evicted_that_would_wait_again(url: str, tmp_path: Path, way: str, why: str) -> None:
    Waiting.evicted.clear()
    said = said_by(url, tmp_path, way, "--apply")

    assert (said.code, said.out, Waiting.evicted) == (1, "", [])
    assert why in said.err
