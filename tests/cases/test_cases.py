"""Field cases: decisions of upstream's tests and issues, made again by the whole operator.

A case is two files: ``<topic>/<name>.input.yaml`` says where it comes from, and what the cluster is;
``<topic>/<name>.expected.yaml`` says what happens, step by step. README.md has the format.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from cases.world import World
from plimsoll.testing.fakes import settled

FOLDER = Path(__file__).parent
INPUTS = sorted(FOLDER.glob("*/*.input.yaml"))
NOW = "2026-01-01T12:00:00+00:00"

DEFAULT = {
    "kind": "SchedulingPolicy",
    "metadata": {"name": "default"},
    "spec": {"scheduling": {"schedulerName": "default-scheduler"}},
}
"""The policy of a case that names none."""


def decide(case: dict[str, Any]) -> list[dict[str, Any]]:
    """What happens in a case, a mapping for each step."""
    return asyncio.run(_played(case))


async def _played(case: dict[str, Any]) -> list[dict[str, Any]]:
    world = World(case.get("now", NOW), case.get("extenders"))
    observed = []
    first = {"apply": [*case.get("policies", [DEFAULT]), *case["objects"]]}
    async with world.running():
        for step in (first, *case.get("steps", ())):
            for verb, given in step.items():
                await _do(world, verb, given, counted=case.get("evictions") == "counted")
            await settled()
            observed.append(world.observed())
    return observed


async def _do(world: World, verb: str, given: Any, *, counted: bool) -> None:
    match verb:
        case "apply":
            for each in given:
                if each["kind"] == "SchedulingPolicy":
                    await world.set_policy(each)
            world.apply(*given)
        case "delete":
            for each in given:
                kind, _, key = each.partition("/")
                world.delete(kind, key)
        case "wait":
            await world.wait(given)
        case "evaluate":
            world.evaluate(**given)
        case "run":
            await world.rebalance(given)
            world.evictions(counted=counted)
        case _:
            pytest.fail(f"a case has no step {verb}")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(each, id=_id)
        for each in INPUTS
        for _id in [f"{each.parent.name}/{each.name.removesuffix('.input.yaml')}"]
    ],
)
def test_decides_as_upstream(path: Path, update_cases: bool) -> None:
    """What happens, step by step, is what the origin of the case says."""
    case = yaml.safe_load(path.read_text())
    expected = path.with_name(path.name.replace(".input.", ".expected."))

    observed = decide(case)

    if update_cases:
        expected.write_text(yaml.safe_dump(observed, sort_keys=False, width=110, allow_unicode=True))
    assert observed == yaml.safe_load(expected.read_text())
