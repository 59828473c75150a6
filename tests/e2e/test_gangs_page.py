"""Executes docs/gangs.md and compares its output."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from e2e.conftest import define
from e2e.polls import eventually
from e2e.speaker import MERGE, TABLE, Speaker, speaking

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e

PAGE = (Path(__file__).parents[2] / "docs" / "gangs.md").read_text(encoding="utf-8")
GROUP = "/apis/plimsoll.dev/v1alpha1/namespaces/default/podgroups/train"
COLLECTIONS = {
    "SchedulingPolicy": "/apis/plimsoll.dev/v1alpha1/schedulingpolicies",
    "PodGroup": "/apis/plimsoll.dev/v1alpha1/namespaces/default/podgroups",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
}


def blocks(language: str) -> list[str]:
    """The page's code blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def rows_shown() -> list[list[str]]:
    """Every row that the page lets kubectl print, without the age."""
    return [line.split()[:-1] for line in PAGE.splitlines() if line.startswith("train ")]


async def row(speaker: Speaker) -> list[str]:
    """What kubectl prints of the group, without the age."""
    table = (await speaker.request("GET", GROUP, takes=TABLE)).accepted()
    columns = [each["name"] for each in table["columnDefinitions"] if not each.get("priority")]
    cells: list[Any] = table["rows"][0]["cells"]
    return [str(cell) for cell in cells[: len(columns) - 1]]


async def test_the_worked_example(
    start_roadstead: StartRoadstead, start_operator: Callable[[Path], Operator]
) -> None:
    """Nothing starts, the page's sentence says why; with a smaller minMember two start."""
    cluster = start_roadstead(nodes=2, node_cpu="2")
    (message,) = [line for line in PAGE.splitlines() if line.startswith("2 of 4 members")]
    (change,) = re.findall(r"kubectl patch podgroup train --type merge -p '(.*)'", PAGE)
    pending, running = rows_shown()
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        operator = start_operator(cluster.kubeconfig)
        made: set[str] = set()
        for block in blocks("yaml"):
            if "scheduling.k8s.io/" in block:
                continue  # played by test_core_groups
            for document in yaml.safe_load_all(block):
                path, name = COLLECTIONS[document["kind"]], document["metadata"]["name"]
                place = f"{path}/{name}"
                if place in made:  # a variant of what the example has: it is judged only
                    answer = await speaker.request(
                        "PATCH", place, document, sends=MERGE, fieldValidation="Strict", dryRun="All"
                    )
                else:
                    answer = await speaker.request("POST", path, document, fieldValidation="Strict")
                answer.accepted()
                made.add(place)

        async def said() -> str:
            status = (await speaker.request("GET", GROUP)).accepted().get("status", {})
            return str(status["conditions"][0]["message"]) if status.get("conditions") else ""

        assert await eventually(said, lambda text: text == message)
        assert await eventually(lambda: row(speaker), lambda cells: cells == pending)
        pods = (await speaker.request("GET", "/api/v1/namespaces/default/pods")).accepted()["items"]
        assert not any(pod["spec"].get("nodeName") for pod in pods)

        (await speaker.request("PATCH", GROUP, yaml.safe_load(change), sends=MERGE)).accepted()

        assert await eventually(lambda: row(speaker), lambda cells: cells == running)
        assert await operator.stop() == 0
