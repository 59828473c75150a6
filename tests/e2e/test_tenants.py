"""A tenant with ``edit`` in her namespace restricts moves there, sees them, and can widen nothing."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy.tools import ROOT, tool
from e2e.conftest import define
from e2e.polls import eventually
from e2e.scene import Scene
from e2e.speaker import speaking

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [pytest.mark.e2e]

ROLES = ROOT / "deploy/components/tenants/tenants.yaml"

#: What she tries besides, with her rights: arguments, standard input, and what the API server says.
REFUSED: dict[str, tuple[str, dict[str, Any] | None, str]] = {
    "a rule in another namespace": (
        "create -n THEIRS -f -",
        {"kind": "RebalancingRule", "metadata": {"name": "x"}, "spec": {"never": True}},
        "cannot create resource",
    ),
    "a policy": (
        "create -f -",
        {"kind": "SchedulingPolicy", "metadata": {"name": "x"}, "spec": {"rebalancing": {"mode": "Enforce"}}},
        "cannot create resource",
    ),
    "a maintenance": (
        "create -f -",
        {"kind": "NodeMaintenance", "metadata": {"name": "x"}, "spec": {"nodes": ["a"]}},
        "cannot create resource",
    ),
    "a record": (
        "create -n HERS -f -",
        {"kind": "Eviction", "metadata": {"name": "x"}, "spec": {}},
        "cannot create resource",
    ),
    "an approval": ("annotate -n HERS evictions --all plimsoll.dev/approved=true", None, "cannot patch"),
    "forgetting moves of the hour": ("delete -n HERS evictions --all --wait=false", None, "cannot delete"),
    "a forged status of a rule": (
        'patch -n HERS rebalancingrule mine --subresource=status --type=merge -p {"status":{"heldPods":0}}',
        None,
        "is forbidden",
    ),
    "moves of others": ("get evictions -n THEIRS", None, "cannot list resource"),
    "moves of everybody": ("get evictions -A", None, "cannot list resource"),
    "labels of her namespace": ("label namespace HERS team=admins", None, "cannot patch resource"),
    "another namespace in the spec": (
        "create -n HERS --validate=strict -f -",
        {
            "kind": "RebalancingRule",
            "metadata": {"name": "x"},
            "spec": {"never": True, "namespaces": ["THEIRS"]},
        },
        'unknown field "spec.namespaces"',
    ),
    "a rule that restricts nothing": (
        "create -n HERS -f -",
        {"kind": "RebalancingRule", "metadata": {"name": "x"}, "spec": {}},
        "say what is restricted",
    ),
    "a number for some pods": (
        "create -n HERS -f -",
        {
            "kind": "RebalancingRule",
            "metadata": {"name": "x"},
            "spec": {"maxMovesPerHour": 3, "podSelector": {}},
        },
        "maxMovesPerHour counts all moves of the namespace",
    ),
    "a huge list": (
        "create -n HERS -f -",
        {
            "kind": "RebalancingRule",
            "metadata": {"name": "x"},
            "spec": {
                "never": True,
                "podSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x"] * 300}]},
            },
        },
        "must have at most 256 items",
    ),
}


class Tenant:
    """Somebody with ``edit`` in one namespace, at a command line."""

    def __init__(self, kubeconfig: Path, hers: str, theirs: str) -> None:
        self._begin = [tool("kubectl"), f"--kubeconfig={kubeconfig}", "--as=alice"]
        self._hers, self._theirs = hers, theirs

    async def says(self, line: str, given: dict[str, Any] | None = None) -> tuple[int, str]:
        """The exit code of a command, and all that it prints."""
        named = [each.replace("HERS", self._hers).replace("THEIRS", self._theirs) for each in line.split()]
        document = "" if given is None else json.dumps({"apiVersion": "plimsoll.dev/v1alpha1", **given})
        done = await asyncio.to_thread(
            subprocess.run,
            [*self._begin, *named],
            input=document,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.returncode, done.stdout


async def test_a_tenant_restricts_her_moves_and_nothing_else(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """Roles of deploy/, an API server that judges by them: every attempt to widen is refused."""
    cluster = start_roadstead(authorization_mode="RBAC")
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        for each in yaml.safe_load_all(ROLES.read_text(encoding="utf-8")):
            (
                await speaker.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", each)
            ).accepted()
        hers, theirs = await Scene(speaker).begin(), await Scene(speaker).begin()
        for role in ("edit", "plimsoll-view", "plimsoll-edit"):
            binding = {
                "metadata": {"name": role},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
            }
            collection = hers.path("rolebindings", "/apis/rbac.authorization.k8s.io/v1")
            (await speaker.request("POST", collection, binding)).accepted()
        alice = Tenant(cluster.kubeconfig, hers.name, theirs.name)
        code, said = await alice.says(
            "create -n HERS -f -",
            {"kind": "RebalancingRule", "metadata": {"name": "mine"}, "spec": {"never": True}},
        )
        assert code == 0, said
        for name, (line, given, sentence) in REFUSED.items():
            code, said = await alice.says(line, given)
            if name in ("an approval", "forgetting moves of the hour"):
                continue  # there is no record yet; tried again below
            assert code != 0, name
            assert sentence in said, name
        start_operator(cluster.kubeconfig).until_ready()

        kept = {each.name: await violated_taint(each) for each in (hers, theirs)}
        await eventually(lambda: theirs.running(app="web"), lambda found: found == [f"{theirs.name}-new"] * 2)
        assert await hers.running(app="web") == kept[hers.name]
        path = hers.path("rebalancingrules/mine", "/apis/plimsoll.dev/v1alpha1")
        await eventually(
            lambda: speaker.request("GET", path),
            lambda answer: answer.accepted().get("status", {}).get("heldPods") == 2,
        )
        code, said = await alice.says("delete -n HERS rebalancingrule mine")
        assert code == 0, said
        await eventually(lambda: hers.running(app="web"), lambda found: found == [f"{hers.name}-new"] * 2)
        code, said = await alice.says("get evictions -n HERS")
        assert code == 0
        assert "RemovePodsViolatingNodeTaints" in said
        for name in ("an approval", "forgetting moves of the hour"):
            line, given, sentence = REFUSED[name]
            code, said = await alice.says(line, given)
            assert code != 0, name
            assert sentence in said, name
        await hers.end()
        await theirs.end()


async def violated_taint(scene: Scene) -> list[str]:
    """Two pods whose node gets a taint that they do not tolerate, and a node for them; where they are."""
    old = await scene.node("old")
    await scene.scheduling()
    await scene.deployment("web", 2)
    where = await scene.until_running(2, app="web")
    await scene.node("new")
    await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints"))
    taint = {"key": "dedicated", "value": "batch", "effect": "NoSchedule"}
    await scene.change_node(old, {"spec": {"taints": [taint]}})
    return where
