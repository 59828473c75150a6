"""Holds refusals of bodies that cannot be decoded to the words of kube-apiserver 1.36.2."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from roadstead.cluster import DevCluster

BODIES = json.loads((Path(__file__).parent / "wrong_bodies.json").read_text(encoding="utf-8"))
#: What roadstead does not know of Go's types: names for texts, and names of embedded structs.
UNKNOWN = {
    "types.UID": "string",
    "v1.PullPolicy": "string",
    "v1.ServiceType": "string",
    "v1.ResourceName": "string",
    "map[v1.QualifiedName]": "map[string]",
    "VolumeSource.emptyDir": "emptyDir",
    "ProbeHandler.httpGet": "httpGet",
    "time zone offset hour": "day",
}


@pytest.fixture(scope="module")
def refusals() -> list[Any]:
    """The answers, in the order of the bodies."""

    async def told() -> list[Any]:
        async with (
            DevCluster(port=None, kubelets=None, controllers=False) as cluster,
            cluster.session() as session,
        ):
            found = []
            for one in BODIES:
                path = one["path"].replace("NS", "default")
                path = path if path.startswith("/") else f"/api/v1/namespaces/default/{path}"
                async with session.post(path, json=one["body"]) as answer:
                    found.append((answer.status, (await answer.json())["message"]))
            return found

    return asyncio.run(told())


@pytest.mark.parametrize("index", range(len(BODIES)))
def test_a_body_is_refused_in_the_words_of_kube_apiserver(index: int, refusals: list[Any]) -> None:
    expected = BODIES[index]["message"]
    for known, ours in UNKNOWN.items():
        expected = expected.replace(known, ours)

    assert refusals[index] == (400, expected)
