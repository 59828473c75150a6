"""Objects that a GitOps tool applies stay as they are: neither defaults nor the operator change them."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy.tools import ROOT, tool
from e2e.conftest import define, documents
from e2e.polls import eventually
from e2e.speaker import speaking
from plimsoll.api.v1alpha1 import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [pytest.mark.e2e]

#: One of each kind, with as little as its author may write.
SMALLEST = [
    {"kind": "NodeMaintenance", "metadata": {"name": "m"}, "spec": {"nodes": ["gone"]}},
    {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2}},
    {"kind": "RebalancingRule", "metadata": {"name": "r", "namespace": "default"}, "spec": {"never": True}},
    {"kind": "SchedulingPolicy", "metadata": {"name": "tiny"}, "spec": {"rebalancing": {}}},
]


async def test_nothing_drifts_after_an_apply(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """Applied, judged and given a status by the operator, applied again: nothing differs."""
    cluster = start_roadstead(nodes=1)
    written = {each["kind"] for each in SMALLEST}
    given: list[Any] = [{"apiVersion": "plimsoll.dev/v1alpha1", **each} for each in SMALLEST]
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        found = [each for each in yaml.safe_load_all(path.read_text("utf-8")) if each["kind"] in written]
        given += [{**each, "metadata": {"namespace": "default", **each["metadata"]}} for each in found]
    cluster_wide = {each.definition.kind for each in KINDS if each.definition.scope == "Cluster"}
    for each in given:
        if each["kind"] in cluster_wide:
            each["metadata"].pop("namespace", None)
    text = yaml.safe_dump_all([*documents("crds"), *given])

    def kubectl(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [tool("kubectl"), f"--kubeconfig={cluster.kubeconfig}", *words, "-f", "-"],
            input=text,
            text=True,
            capture_output=True,
            check=False,
        )

    def versions() -> list[tuple[str, str, str]]:
        listed = json.loads(kubectl("get", "-o", "json").stdout)["items"]
        return [
            (each["kind"], each["metadata"]["name"], each["metadata"]["resourceVersion"]) for each in listed
        ]

    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        applied = kubectl("apply", "--server-side", "--force-conflicts")
        assert applied.returncode == 0, applied.stderr
        start_operator(cluster.kubeconfig).until_ready()
        for judged in ("namespaces/default/rebalancingrules/r", "schedulingpolicies/tiny"):
            await eventually(
                lambda judged=judged: speaker.request("GET", f"/apis/plimsoll.dev/v1alpha1/{judged}"),  # type: ignore[misc] # a lambda that keeps a variable of the loop
                lambda answer: "status" in answer.accepted(),
            )
        difference = kubectl("diff", "--server-side")
        assert (difference.returncode, difference.stdout) == (0, "")
        crds = [each for each in versions() if each[0] == "CustomResourceDefinition"]
        again = kubectl("apply", "--server-side")
        assert again.returncode == 0, again.stderr
        assert [each for each in versions() if each[0] == "CustomResourceDefinition"] == crds
        assert kubectl("diff", "--server-side").returncode == 0
