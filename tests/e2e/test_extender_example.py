"""docs/extenders.md: the example does what the page says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from e2e.polls import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from e2e.scene import Obj, Scene

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "extender"
PAGE = (ROOT / "docs" / "extenders.md").read_text(encoding="utf-8")


@contextmanager
def cool_racks(temperatures: Path) -> Iterator[str]:
    """The example, on any port; its URL."""
    command = [sys.executable, str(FOLDER / "cool_racks.py"), str(temperatures), "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        yield process.stderr.readline().strip()
    finally:
        process.kill()
        process.communicate()


def test_the_page_shows_the_files_as_they_are() -> None:
    """What a reader copies is what the tests run."""
    program = (FOLDER / "cool_racks.py").read_text(encoding="utf-8")
    policy = (FOLDER / "policy.yaml").read_text(encoding="utf-8")

    for language, content in (("py", program), ("yaml", policy)):
        (block,) = re.findall(rf"^```{language}\n(.*?\n)```$", PAGE, flags=re.MULTILINE | re.DOTALL)
        assert block in content


async def test_the_example(scene: Scene, tmp_path: Path) -> None:
    """Cool racks first; too hot is too hot; an unreachable extender is reported."""
    (first,) = re.findall(r"echo '(.*)' > temperatures.json", PAGE)
    temperatures = tmp_path / "temperatures.json"
    temperatures.write_text(first)
    spec: Obj = yaml.safe_load((FOLDER / "policy.yaml").read_text(encoding="utf-8"))["spec"]
    spec["scheduling"]["schedulerName"] = scheduler = f"{scene.scheduler}-cool"
    nodes = {
        rack: await scene.node(rack, labels={"example.com/rack": rack}) for rack in ("north", "south", "west")
    }

    with cool_racks(temperatures) as url:
        spec["scheduling"]["extenders"][0]["urlPrefix"] = url
        policy = await scene.policy(spec, "cool-racks")
        await scene.until_condition(policy, "Ready", "True")
        await scene.pod("web", schedulerName=scheduler)
        assert await scene.until_bound("web") == nodes["west"]

        temperatures.write_text(json.dumps(dict.fromkeys(nodes, 50)))
        await scene.pod("late", schedulerName=scheduler)
        condition = await eventually(
            lambda: scene.condition("late"), lambda one: one.get("status") == "False"
        )
        (promised,) = re.findall(r"(1 rack north.*too hot)\. …", PAGE)
        assert promised in condition["message"]

    for number in range(3):
        await scene.pod(f"later-{number}", schedulerName=scheduler)
    condition = await scene.until_condition(policy, "Degraded", "True", "ExtenderFailed")
    said = re.escape(f'" has failed N times in a row: Post "{url}/filter": ').replace("N", "[0-9]+")
    assert re.match(re.escape(f'extender "{url}') + said, condition["message"])
