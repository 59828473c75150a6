"""docs/install.md and docs/how-to/upgrade.md, carried out: each command as it is written; nothing is left."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deploy.tools import ROOT, tool
from e2e.host import Host
from e2e.page_shell import execute
from e2e.polls import eventually
from e2e.speaker import speaking

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator_process import Operator
    from e2e.speaker import Speaker
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,  # a whole life of an installation
]

Obj = dict[str, Any]


def commands(section: str) -> list[str]:
    """The commands of a section, one mark for where it begins to take away."""
    text = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    (chosen,) = re.findall(rf"^## {section}\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)
    found = []
    for part in re.split(r"^(?=### )", chosen, flags=re.MULTILINE):
        if part.startswith("### Uninstall"):
            found.append("")
        for block in re.findall(r"^```console\n(.*?)^```", part, re.MULTILINE | re.DOTALL):
            found += re.findall(r"^\$ (.+)$", block, re.MULTILINE)
    return found


async def told(command: str, environment: dict[str, str]) -> str:
    """What a shell says to a command that must succeed."""
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euo",
        "pipefail",
        "-c",
        command,
        cwd=ROOT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), 300)
    except TimeoutError:
        process.kill()
        said, _ = await process.communicate()
        raise AssertionError(f"$ {command}\nhas not ended: {said.decode()}") from None
    assert process.returncode == 0, f"$ {command}\n{said.decode()}"
    return said.decode()


async def everything(speaker: Speaker) -> set[str]:
    """Each object of the cluster, with what it bears; but for events, which fade."""
    paths = ["/api/v1"]
    for group in (await speaker.request("GET", "/apis")).accepted()["groups"]:
        paths += (f"/apis/{each['groupVersion']}" for each in group["versions"])
    found = set()
    for path in paths:
        for resource in (await speaker.request("GET", path)).accepted()["resources"]:
            if "list" not in resource["verbs"] or resource["name"] == "events" or "metrics.k8s.io" in path:
                continue
            listed = (await speaker.request("GET", f"{path}/{resource['name']}")).accepted()["items"]
            for each in listed:
                meta = each["metadata"]
                bears = [*meta.get("finalizers", ()), *meta.get("labels", ()), *meta.get("annotations", ())]
                found.add(
                    f"{path}/{resource['name']} {meta.get('namespace', '')}/{meta['name']} {sorted(bears)}"
                )
    return found


@pytest.mark.parametrize(
    ("section", "uses"), [("With kubectl", "kubectl"), ("With Helm", "helm")], ids=["kubectl", "helm"]
)
async def test_an_installation_comes_works_and_goes_as_the_page_says(
    section: str,
    uses: str,
    start_roadstead: StartRoadstead,
    start_operator: Callable[..., Operator],
    tmp_path: Path,
) -> None:
    """Install, look, allow, upgrade, uninstall: all succeeds, nothing is forbidden, nothing is left."""
    cluster = start_roadstead(nodes=2)
    environment = {
        "PATH": f"{Path(tool('kubectl')).parent}:{Path(tool('helm')).parent}:/usr/bin:/bin",
        "KUBECONFIG": str(cluster.kubeconfig),
        "HOME": str(tmp_path),
    }
    steps = commands(section)
    assert any(step.startswith(uses) for step in steps)
    async with speaking(cluster.kubeconfig) as speaker:
        before = await everything(speaker)
        host = Host(speaker, cluster, start_operator, tmp_path)
        speaker.begin(host.run())
        refused: set[tuple[str, str, str]] | None = None
        for step in steps:
            if not step:
                assert await everything(speaker) - before, "something was installed"
                refused = set(host.refused)
                continue
            await told(step, environment)

        assert refused == set(), "while it was installed"
        await eventually(lambda: everything(speaker), lambda after: after == before)
    assert host.ran, "the operator ran"
    errors = [line for log in host.said for line in log.splitlines() if '"error"' in line or "[error" in line]
    assert errors == [], "none that an uninstallation causes"
    assert host.tested == ([0] if uses == "helm" else [])


async def test_an_upgrade_and_the_way_back_go_as_the_page_says(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator], tmp_path: Path
) -> None:
    """Each new image is a new process; a policy is served before and after, and nothing is forbidden."""
    cluster = start_roadstead(nodes=2)
    page = (ROOT / "docs/how-to/upgrade.md").read_text(encoding="utf-8")
    for folder in ("crds", "deploy", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    async with speaking(cluster.kubeconfig) as speaker:
        host = Host(speaker, cluster, start_operator, tmp_path)
        speaker.begin(host.run())
        cluster.apply(*sorted((ROOT / "crds").glob("*.yaml")))
        environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
        for argument in ("-k deploy/enforce", "-f examples/scheduler.yaml"):
            await told(f"{tool('kubectl')} apply {argument}", environment)
        policy = "schedulingpolicies.plimsoll.dev/scheduler"
        await told(f"{tool('kubectl')} wait --for=condition=Ready --timeout=120s {policy}", environment)

        await execute(page, tmp_path, kubeconfig=cluster.kubeconfig)

        await eventually(lambda: asyncio.sleep(0, len(host.ran)), (3).__eq__)
    assert host.refused == set()
    assert not [line for log in host.said for line in log.splitlines() if "[error" in line]
