"""Log lines of a process that cannot work: one for each change, with a remedy, without tracebacks."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING, Any

import pytest

from e2e.door import door, kubeconfig_for
from e2e.polls import eventually
from e2e.speaker import speaking

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.conftest import StartGuarded
    from e2e.door import Call
    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e

JSON = ("--log-format", "json")


def lines_of(operator: Operator) -> list[dict[str, Any]]:
    """Its log; each line must be one object with a time, a level and a sentence."""
    lines = [json.loads(line) for line in operator.said().splitlines()]
    for line in lines:
        assert {"timestamp", "level", "event", "logger"} <= set(line), line
        assert "exception" not in line, line
    return lines


async def until_said(operator: Operator, *words: str) -> None:
    """Wait until it has said all of it."""

    async def said() -> str:
        return operator.said()

    await eventually(said, lambda text: all(word in text for word in words))


async def ended(operator: Operator) -> int | None:
    """Wait until it has ended; its exit status."""

    async def status() -> int | None:
        return operator.status

    return await eventually(status, lambda found: found is not None)


@pytest.mark.parametrize("which", ["metrics", "health"])
async def test_a_port_that_is_taken_ends_it_with_one_line(
    which: str, start_operator: Callable[..., Operator], tmp_path: Path
) -> None:
    """Waiting would not help; the line names the port and the options."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        nowhere = kubeconfig_for(tmp_path / "nowhere", "http://127.0.0.1:9", "token")
        operator = start_operator(nowhere, *JSON, f"--{which}-port", str(port))

        assert await ended(operator) == 1
    (line,) = lines_of(operator)
    assert line["level"] == "error"
    assert line["event"] == (
        f"cannot listen on 127.0.0.1:{port}: another process listens there;"
        " choose another --metrics-port, --health-port or --bind-address"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(
            "not a kubeconfig", "this is not a kubeconfig: it has no lists of clusters and contexts"
        ),
        pytest.param(None, "there is no such file"),
        pytest.param("a: [", "while parsing a flow"),
    ],
)
async def test_an_unusable_kubeconfig_ends_it_with_one_line(
    content: str | None, said: str, start_operator: Callable[..., Operator], tmp_path: Path
) -> None:
    """The file is named, and what is wrong with it."""
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    operator = start_operator(path, *JSON)

    assert await ended(operator) == 1
    (line,) = lines_of(operator)
    assert line["level"] == "error"
    assert line["event"].startswith(f"reading {path}: no usable configuration: {said}")


async def test_a_server_that_does_not_answer_is_logged_once(
    start_operator: Callable[..., Operator], start_roadstead: StartRoadstead, tmp_path: Path
) -> None:
    """It may come back: the process waits, says so when it does, and ends on SIGTERM."""
    cluster = start_roadstead()
    async with door(cluster.plain_url, lambda _: True) as entrance:
        port = int(entrance.url.rpartition(":")[2])
    assert port
    operator = start_operator(kubeconfig_for(tmp_path / "own", entrance.url, cluster.token), *JSON)
    await until_said(operator, "the API server does not answer")
    await asyncio.sleep(5)  # it tries again after 1 s and after 2 s more
    told = [line["event"] for line in lines_of(operator)]
    assert told.count("the API server does not answer") == 1
    assert len(told) <= 5, told
    (line,) = [line for line in lines_of(operator) if line["event"] == "the API server does not answer"]
    assert line["server"] == entrance.url
    assert "check its address and the network" in line["remedy"]
    assert operator.ask("/readyz")[0] == 503
    assert operator.ask("/healthz")[0] == 200
    assert await operator.stop() == 0
    lines_of(operator)


async def test_missing_rights_are_logged_once_with_the_resources(
    start_operator: Callable[..., Operator], start_roadstead: StartRoadstead, tmp_path: Path
) -> None:
    """Of eighteen collections and kopf's requests: a line, then one a minute; it goes on with the rights."""
    cluster = start_roadstead()
    permitted = [False]
    async with (
        speaking(cluster.kubeconfig),
        door(cluster.plain_url, lambda asked: permitted[0] or asked.resource == "leases") as entrance,
    ):
        operator = start_operator(kubeconfig_for(tmp_path / "own", entrance.url, cluster.token), *JSON)
        await until_said(operator, "the API server forbids requests")
        await asyncio.sleep(5)
        lines = lines_of(operator)
        forbidden = [line for line in lines if line["event"] == "the API server forbids requests"]
        assert 1 <= len(forbidden) <= 2, "kopf asks a little later"
        assert "pods" in forbidden[0]["resources"] or "more" in forbidden[0]["resources"]
        assert "bind the roles of deploy/" in forbidden[0]["remedy"]
        assert len(lines) <= 7, lines
        permitted[0] = True
        await asyncio.to_thread(operator.until_ready)
        assert await operator.stop() == 0
    lines_of(operator)


async def test_missing_custom_resources_are_logged_once_and_waited_for(
    start_operator: Callable[..., Operator], start_roadstead: StartRoadstead
) -> None:
    """They may be installed later: it is ready, for it serves them as soon as they are there."""
    operator = start_operator(start_roadstead().kubeconfig, *JSON).until_ready()
    await until_said(operator, "the API server does not serve resources")
    await asyncio.sleep(6)
    lines = lines_of(operator)
    absent = [line for line in lines if line["event"] == "the API server does not serve resources"]
    assert 1 <= len(absent) <= 2, absent
    assert "schedulingpolicies" in absent[-1]["resources"]
    assert absent[0]["remedy"].startswith("apply crds/")
    assert len(lines) <= 7, lines
    assert await operator.stop() == 0
    lines_of(operator)


async def test_a_lost_lease_is_one_line(
    start_operator: Callable[..., Operator], start_roadstead: StartRoadstead, tmp_path: Path
) -> None:
    """With its cause, and no traceback of what was under way."""
    cluster = start_roadstead()
    async with door(cluster.plain_url, lambda _: True) as entrance:
        operator = start_operator(kubeconfig_for(tmp_path / "own", entrance.url, cluster.token), *JSON)
        await asyncio.to_thread(operator.until_ready)
        await until_said(operator, '"leading"')
        entrance.close()

        assert await ended(operator) == 1
    last = lines_of(operator)[-1]
    assert last["level"] == "error"
    assert last["event"].startswith("leader election lost: ")
    assert "last renewed 1" in last["event"]


async def test_an_error_in_the_watch_of_policies_is_outlived(guarded: StartGuarded) -> None:
    """Policies outlive it: kopf would end at any but a 410; they are listed again."""
    watched: list[Call] = []

    def trouble(call: Call) -> str:
        if call != ("watch", "plimsoll.dev", "schedulingpolicies"):
            return ""
        watched.append(call)
        return "failing"

    async def times() -> int:
        return len(watched)

    async with guarded("enforce") as (_, entrance, operator):
        await asyncio.to_thread(operator.until_ready)
        await until_said(operator, "leading")
        entrance.trouble = trouble
        entrance.break_streams()

        await eventually(times, lambda count: count >= 3)
        assert operator.status is None
        assert "Traceback" not in operator.said()
