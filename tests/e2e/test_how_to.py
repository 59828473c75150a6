"""docs/how-to, carried out: the commands of each page in order, on a cluster with policies and pods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deploy.tools import ROOT
from e2e.conftest import define
from e2e.page_shell import NOT_EXECUTED, ShownCommand, execute, shown_commands, unmarked
from e2e.speaker import speaking

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs/how-to").glob("*.md"))}
SCENE = Path(__file__).with_name("how_to_scene.yaml")

#: Before each page: pods of web run, one node has a taint that a policy heeds, and a run is over.
BEFORE = f"""
kubectl apply -f {SCENE} > /dev/null || exit 1
kubectl -n shop rollout status deployment/web --timeout=120s > /dev/null || exit 1
kubectl taint node node-0001 maintenance=true:NoSchedule > /dev/null || exit 1
until kubectl get evictions.plimsoll.dev -A -o name | grep -q .; do sleep 1; done
"""


@pytest.mark.slow  # a cluster and an operator for each page
@pytest.mark.parametrize("page", PAGES)
async def test_each_command_does_what_the_page_says(
    page: str, tmp_path: Path, start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    cluster = start_roadstead(nodes=3)
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
    start_operator(cluster.kubeconfig).until_ready()
    for folder in ("examples", "deploy", "crds"):
        (tmp_path / folder).symlink_to(ROOT / folder)

    await execute(PAGES[page], tmp_path, before=BEFORE, kubeconfig=cluster.kubeconfig)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_commands_and_says_which_are_not_executed(page: str) -> None:
    text = PAGES[page]

    assert shown_commands(text), "no console block"
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
