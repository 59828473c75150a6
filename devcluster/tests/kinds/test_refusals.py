"""Objects that a real API server refuses are refused here, for the same reasons at the same fields."""

import copy
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from roadstead.clients import RunningCluster

RECORDED = yaml.load(Path(__file__).with_name("refusals.yaml").read_text(), Loader=yaml.CSafeLoader)
NOTHING = object()


def changed(base: Any, at: str, value: Any) -> Any:
    """A copy of an object with another value at a place, or without it."""
    obj = copy.deepcopy(base)
    *way, last = (int(step) if step.isdigit() else step for step in at.split("."))
    holder = obj
    for step in way:
        holder = holder[step]
    if value is NOTHING:
        del holder[last]
    else:
        holder[last] = value
    return obj


def answer(cluster: Any, path: str, body: Any) -> tuple[int, Any]:
    """What a creation that is only tried is answered."""
    request = urllib.request.Request(
        f"{cluster.plain_url}{path}?dryRun=All",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {cluster.token}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.parametrize("kind", RECORDED)
def test_what_others_are_changes_of_is_taken(roadstead_process: RunningCluster, kind: Any) -> None:
    """The object itself is let through."""
    assert answer(roadstead_process, RECORDED[kind]["path"], RECORDED[kind]["base"])[0] == 201


@pytest.mark.parametrize("kind", RECORDED)
def test_refuses_as_recorded(roadstead_process: RunningCluster, kind: Any) -> None:
    """Each change is refused by the causes that a real server gives."""
    recorded = RECORDED[kind]
    for case in recorded["refused"]:
        body = changed(recorded["base"], case["at"], case.get("value", NOTHING))

        status, message = answer(roadstead_process, recorded["path"], body)

        assert status == 422, (case, message)
        causes = message["details"]["causes"]
        given = {f"{one['reason'].removeprefix('FieldValue')} {one['field']}" for one in causes}
        assert given == set(case["causes"]), case
