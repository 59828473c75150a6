"""Tokens that end while the operator runs: the server refuses them, and nothing of the operator ends."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from e2e.conftest import define
from e2e.door import kubeconfig_for
from e2e.polls import eventually
from e2e.scene import Scene
from e2e.speaker import speaking

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.conftest import StartGuarded
    from e2e.door import Call
    from e2e.operator_process import Operator
    from e2e.speaker import Speaker
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plimsoll"


def program(path: Path, token: Path) -> dict[str, object]:
    """A login program, as exec in a kubeconfig names it, that gives the token of a file."""
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": "TOKEN"}}
    path.write_text(
        f"#!{sys.executable}\n"
        f"print({json.dumps(json.dumps(answer))}.replace('TOKEN', open({str(token)!r}).read().strip()))\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": version, "command": str(path)}}


def replace(path: Path, text: str) -> None:
    """Put another file in the place of one, as kubelets do: no reader finds a part of it."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)


async def renewal(speaker: Speaker) -> str:
    """When the lease was renewed last."""
    lease = (await speaker.request("GET", LEASE)).accepted()
    return str(lease["spec"]["renewTime"])


@pytest.mark.parametrize("source", ["kubeconfig", "exec"])
async def test_an_operator_whose_token_is_replaced_goes_on(
    source: str,
    start_roadstead: StartRoadstead,
    start_operator: Callable[..., Operator],
    tmp_path: Path,
) -> None:
    """The server refuses the old one: pods are bound, policies are heard of, and the lease is renewed."""
    tokens, present = tmp_path / "tokens", tmp_path / "present"
    for each in (tokens, present):
        each.write_text("first")
    cluster = start_roadstead(token_file=tokens)
    own = kubeconfig_for(tmp_path / "own", cluster.plain_url, "first")
    if source == "exec":
        config = yaml.safe_load(own.read_text())
        config["users"][0]["user"] = program(tmp_path / "login", present)
        own.write_text(yaml.safe_dump(config))
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        operator = start_operator(own)
        await asyncio.to_thread(operator.until_ready)
        scene = await Scene(speaker).begin()
        await scene.node("a")
        await scene.scheduling()
        await scene.pod("before")
        await scene.until_bound("before")

        replace(tokens, "first second")
        replace(present, "second")
        if source == "kubeconfig":
            kubeconfig_for(tmp_path / "next", cluster.plain_url, "second").replace(own)
        replace(tokens, "second")
        renewed = await renewal(speaker)
        await scene.pod("after")
        await scene.until_bound("after")
        other = f"{scene.scheduler}-other"
        name = await scene.policy({"scheduling": {"schedulerName": other}}, "other")
        await scene.until_condition(name, "Ready", "True")
        await scene.pod("by-other", schedulerName=other)
        await scene.until_bound("by-other")
        # The election has a connection of its own, which meets the refusal at its next renewal.
        renewed = await eventually(lambda: renewal(speaker), lambda found: found != renewed)

        refused = operator.metric("plimsoll_rest_client_requests_total", code="401")
        for _ in range(2):
            renewed = await eventually(lambda: renewal(speaker), lambda found, last=renewed: found != last)  # type: ignore[misc] # a lambda that keeps a variable of the loop
    assert refused >= 1, "the server refused the old token"
    assert operator.metric("plimsoll_rest_client_requests_total", code="401") == refused
    assert operator.leads
    assert operator.status is None
    assert operator.ask("/readyz")[0] == 200
    assert "Traceback" not in operator.said()
    assert await operator.stop() == 0


async def test_single_refusals_of_a_good_token_end_nothing(guarded: StartGuarded) -> None:
    """One 401 on each kind of request, kopf's among them: it logs in again with the same token."""
    met: set[Call] = set()

    def trouble(call: Call) -> str:
        if call in met:
            return ""
        met.add(call)
        return "unauthorized"

    async with guarded("enforce") as (scene, entrance, operator):
        await asyncio.to_thread(operator.until_ready)
        await scene.node("a")
        entrance.trouble = trouble
        entrance.break_streams()
        name = await scene.scheduling()
        await scene.until_condition(name, "Ready", "True")
        await scene.pod("web")
        await scene.until_bound("web")

        async def refused() -> set[Call]:
            return met

        await eventually(
            refused,
            lambda found: (
                found
                > {
                    ("watch", "plimsoll.dev", "schedulingpolicies"),
                    ("watch", "", "pods"),
                    ("update", "coordination.k8s.io", "leases"),
                }
            ),
        )
        await asyncio.sleep(4)  # kopf logs in again, and the lease is renewed at the next attempt
        assert operator.status is None
        assert operator.ask("/readyz")[0] == 200
        assert operator.ask("/healthz", operator.health_port) == (200, "ok\n")
        assert operator.leads
        assert "Traceback" not in operator.said()
        assert await operator.stop() == 0


async def test_a_token_that_is_never_renewed_is_reported_and_waited_for(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator], tmp_path: Path
) -> None:
    """A standby or a new process: one line, not ready, and it goes on once the token is good."""
    tokens = tmp_path / "tokens"
    cluster = start_roadstead(token_file=tokens)
    operator = start_operator(kubeconfig_for(tmp_path / "own", cluster.plain_url, "later"))

    async def said() -> str:
        return operator.said()

    await eventually(said, lambda text: "does not accept the credentials" in text)
    await asyncio.sleep(5)
    assert operator.ask("/readyz")[0] == 503
    assert operator.ask("/healthz")[0] == 200, "a restart would not help"
    assert operator.said().count("does not accept the credentials") == 1
    assert len(operator.said().splitlines()) <= 6, operator.said()

    replace(tokens, "later")
    await asyncio.to_thread(operator.until_ready)
    await eventually(said, lambda text: "accepts the credentials again" in text)
    assert "Traceback" not in operator.said()
    assert await operator.stop() == 0
