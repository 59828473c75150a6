"""docs/how-to, carried out: the commands of each page in order, on a cluster with policies and pods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from deploy.tools import ROOT
from e2e.conftest import define
from e2e.page_shell import NOT_EXECUTED, ShownCommand, execute, shown_commands, unmarked
from e2e.polls import eventually
from e2e.scene import POLICIES
from e2e.speaker import MERGE, speaking

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator_process import Operator
    from e2e.speaker import Speaker
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [pytest.mark.e2e]

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs/how-to").glob("*.md"))}
OF_THEIR_OWN = {
    "adopt-pods",
    "many-operators",
    "train-in-one-rack",
    "upgrade",
}  # executed by a test of their own
#: Without a command that runs here: tests/deploy/test_clouds.py and tests/cases/kueue hold what they say.
ELSEWHERE = {"run-on-aks", "run-on-eks", "run-on-gke", "run-on-openshift", "run-with-kueue"}
RECORDS = "/apis/plimsoll.dev/v1alpha1/evictions"
SCENE = Path(__file__).with_name("how_to_scene.yaml")

COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "SchedulingPolicy": POLICIES,
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
}


async def begin(speaker: Speaker) -> None:
    """Before each page: pods of web run, one node has a taint that a policy heeds, and a run is over."""
    for each in yaml.load_all(SCENE.read_text(encoding="utf-8"), yaml.CSafeLoader):
        path = COLLECTIONS[each["kind"]].format(**each["metadata"])
        (await speaker.request("POST", path, each)).accepted()

    async def ready() -> int:
        path = "/apis/apps/v1/namespaces/shop/deployments/web"
        status: dict[str, int] = (await speaker.request("GET", path)).accepted().get("status", {})
        return status.get("readyReplicas", 0)

    async def records() -> list[object]:
        found: list[object] = (await speaker.request("GET", RECORDS)).accepted()["items"]
        return found

    await eventually(ready, lambda count: count == 6)
    tainted = {"spec": {"taints": [{"key": "maintenance", "value": "true", "effect": "NoSchedule"}]}}
    await speaker.request("PATCH", "/api/v1/nodes/node-0001", tainted, sends=MERGE)
    await eventually(records)


@pytest.mark.slow  # a cluster and an operator for each page
@pytest.mark.parametrize("page", sorted(PAGES.keys() - OF_THEIR_OWN - ELSEWHERE))
async def test_each_command_does_what_the_page_says(
    page: str, tmp_path: Path, start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    cluster = start_roadstead(nodes=3)
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        start_operator(cluster.kubeconfig).until_ready()
        await begin(speaker)
    for folder in ("examples", "deploy", "crds"):
        (tmp_path / folder).symlink_to(ROOT / folder)

    await execute(PAGES[page], tmp_path, kubeconfig=cluster.kubeconfig)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_commands_and_says_which_are_not_executed(page: str) -> None:
    text = PAGES[page]

    assert bool(shown_commands(text)) is (page not in ELSEWHERE), "no console block"
    assert unmarked(text) == [], f"say why in a line above: {NOT_EXECUTED} …*"


def test_outputs_are_compared_in_order_and_with_gaps() -> None:
    page = "1. Look:\n\n   ```console\n   $ get it\n   NAME   AGE\n   web-…   3s\n   $ see it\n   ```\n"
    shown = shown_commands(page)

    assert shown == [ShownCommand("get it", ("NAME   AGE", "web-…   3s")), ShownCommand("see it", ())]
    assert shown[0].missing("NAME    AGE\nother   1s\nweb-1   3s\n") == ""
    assert shown[0].missing("web-1  3s\nNAME  AGE\n") == "web-…   3s"
    assert shown[0].missing("NAME AGE\nweb-1 4s\n") == "web-…   3s"
    assert unmarked("Look:\n\n```text\nx\n```\n") == ["Look:"]
    assert unmarked(f"{NOT_EXECUTED} it needs a server.*\n\n```text\nx\n```\n") == []
