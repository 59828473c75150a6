"""People stop and continue the moves of policies from a command line, and say why."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from cli.commands import Said, say
from e2e.polls import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from e2e.speaker import Speaker

POLICIES = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"


class Stage:
    """Two namespaces with a lease each, and a policy."""

    def __init__(self, speaker: Speaker, kubeconfig: Path) -> None:
        self.speaker = speaker
        self.kubeconfig = kubeconfig

    async def say(self, *words: str) -> Said:
        """Run a command against the cluster."""
        return await asyncio.to_thread(say, *words, KUBECONFIG=str(self.kubeconfig))

    async def metadata(self, path: str) -> Any:
        return (await self.speaker.request("GET", path)).accepted()["metadata"].get("annotations", {})

    async def make(self, path: str, name: str, **content: Any) -> None:
        body = {"metadata": {"name": name}, **content}
        (await self.speaker.request("POST", path, body)).accepted()


@pytest.fixture
async def stage(speaker: Speaker, kubeconfig: Path) -> AsyncIterator[Stage]:
    """What there is to pause; the leases have names that no operator uses."""
    one = Stage(speaker, kubeconfig)
    for namespace, leases in (("pausing", ("pausing", "both")), ("pausing-too", ("both",))):
        await one.make("/api/v1/namespaces", namespace, apiVersion="v1", kind="Namespace")
        for lease in leases:
            kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
            await one.make(LEASES.format(namespace), lease, **kind, spec={})
    await one.make(POLICIES, "pausing", apiVersion="plimsoll.dev/v1alpha1", kind="SchedulingPolicy", spec={})
    yield one
    paths = (f"{POLICIES}/pausing", "/api/v1/namespaces/pausing", "/api/v1/namespaces/pausing-too")
    for path in paths:
        await speaker.request("DELETE", path)
    for path in paths:  # the next test has namespaces of the same names
        await eventually(
            lambda path=path: speaker.request("GET", path),  # type: ignore[misc] # a lambda that keeps a variable of the loop
            lambda answer: answer.status == 404,
        )


async def test_the_stop_button_is_pressed_and_released(stage: Stage) -> None:
    """In the namespace of the operator's lease, with who and why; the second time nothing changes."""
    paused = await stage.say("pause", "--lease", "pausing", "--reason", "the storage is down")
    assert paused.out == "namespace/pausing paused: no policy moves a pod until plimsoll resume\n", paused
    found = await stage.metadata("/api/v1/namespaces/pausing")
    assert found["plimsoll.dev/stop"] == "true"
    assert found["plimsoll.dev/pause-reason"] == "the storage is down"
    assert found["plimsoll.dev/paused-by"]
    assert await stage.say("pause", "--lease", "pausing") == paused
    assert await stage.metadata("/api/v1/namespaces/pausing") == found

    said = await stage.say("-n", "pausing", "resume", "--lease", "pausing")
    assert (said.code, said.out) == (0, "namespace/pausing resumed\n")
    assert not {key for key in await stage.metadata("/api/v1/namespaces/pausing") if "plimsoll" in key}
    said = await stage.say("resume", "--lease", "pausing")
    assert said.out == "namespace/pausing was not paused\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--lease", "both"), "several namespaces have a lease both: pausing, pausing-too; choose with"),
        (("--lease", "missing"), "no operator was found: no namespace has a lease missing; name the lease"),
        (
            ("-n", "pausing-too", "--lease", "pausing"),
            "no operator in namespace pausing-too: it has no lease",
        ),
        (("pausing", "missing"), "no SchedulingPolicy missing; kubectl get spol lists them"),
    ],
)
async def test_what_cannot_be_found_is_said_and_changes_nothing(
    stage: Stage, words: tuple[str, ...], sentence: str
) -> None:
    """An annotation in a wrong namespace would stop nothing, and a user would believe it did."""
    said = await stage.say("pause", *words)

    assert said.code == 1
    assert said.err.startswith(f"error: {sentence}")
    for namespace in ("pausing", "pausing-too"):
        assert "plimsoll.dev/stop" not in await stage.metadata(f"/api/v1/namespaces/{namespace}")
    policy = (await stage.speaker.request("GET", f"{POLICIES}/pausing")).accepted()
    assert not policy["spec"].get("suspend")


async def test_policies_are_suspended_and_resumed(stage: Stage) -> None:
    said = await stage.say("pause", "pausing", "--reason", "a test")
    assert (said.code, said.out) == (0, "schedulingpolicy.plimsoll.dev/pausing paused\n")
    policy = (await stage.speaker.request("GET", f"{POLICIES}/pausing")).accepted()
    assert policy["spec"]["suspend"] is True
    assert policy["metadata"]["annotations"]["plimsoll.dev/pause-reason"] == "a test"

    said = await stage.say("resume", "pausing")
    assert said.out == "schedulingpolicy.plimsoll.dev/pausing resumed\n"
    policy = (await stage.speaker.request("GET", f"{POLICIES}/pausing")).accepted()
    assert policy["spec"]["suspend"] is False
    assert not policy["metadata"].get("annotations")
    assert (await stage.say("resume", "pausing")).out == (
        "schedulingpolicy.plimsoll.dev/pausing was not paused\n"
    )
