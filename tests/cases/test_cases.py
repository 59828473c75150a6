"""Field cases: decisions of upstream's tests and issues, made again by the whole operator.

A case is two files: ``<topic>/<name>.input.yaml`` says where it comes from, and what the cluster is;
``<topic>/<name>.expected.yaml`` says what happens, step by step. README.md has the format.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cases.world import World
from plimsoll.strategies import IN_TREE as STRATEGIES
from plimsoll.testing.fakes import settled

FOLDER = Path(__file__).parent
INPUTS = sorted(FOLDER.glob("*/*.input.yaml"))
NOW = "2026-01-01T12:00:00+00:00"


def read(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader=yaml.CSafeLoader)


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
    world = World(case.get("now", NOW), case.get("extenders"), case.get("admission"))
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
        case "delete" | "unfinalize":
            change = world.delete if verb == "delete" else world.unfinalize
            for each in given:
                kind, _, key = each.partition("/")
                change(kind, key)
        case "annotate":
            world.annotate(given)
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
    case = read(path)
    expected = path.with_name(path.name.replace(".input.", ".expected."))

    observed = decide(case)

    if update_cases and (not expected.exists() or observed != read(expected)):
        expected.write_text(yaml.safe_dump(observed, sort_keys=False, width=110, allow_unicode=True))
    assert observed == read(expected)


def test_a_pod_with_a_finalizer_leaves_when_it_loses_it() -> None:
    """It is terminating until then, and takes its room."""
    full = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    case = {
        "objects": [
            {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "pods": 9}}},
            {
                "kind": "Pod",
                "metadata": {"name": "old", "finalizers": ["example.com/stays"]},
                "spec": {"nodeName": "n", **full},
            },
            {"kind": "Pod", "metadata": {"name": "new"}, "spec": full},
        ],
        "steps": [
            {"delete": ["Pod/default/old"], "wait": 20},
            {"unfinalize": ["Pod/default/old"], "wait": 20},
        ],
    }

    _, deleted, gone = decide(case)

    assert deleted == {"waiting": {"unschedulable": 1}}
    assert gone["bound"] == {"default/new": "n"}


def test_every_case_names_its_origin() -> None:
    """Upstream's test with its version, or an issue; and what the case shows."""
    unnamed = [
        path.name
        for path in INPUTS
        for case in [read(path)]
        if not re.search(r"v\d\.\d+|issue|KEP", case["origin"]) or not case["about"].endswith(".")
    ]

    assert unnamed == []


def test_no_expectation_is_without_its_case() -> None:
    """Files come in pairs."""
    inputs = {path.name.removesuffix(".input.yaml") for path in INPUTS}

    assert inputs == {path.name.removesuffix(".expected.yaml") for path in FOLDER.glob("*/*.expected.yaml")}
    assert len(inputs) >= 60


def test_every_strategy_of_descheduler_has_a_case() -> None:
    """Those of our own are compared with nothing."""
    upstream = {
        each.name
        for each in STRATEGIES
        if "Source: descheduler v" in str(sys.modules[each.__module__].__doc__)
    }
    covered = {name for path in INPUTS for name in upstream if f"name: {name}" in path.read_text()}

    assert covered == upstream
