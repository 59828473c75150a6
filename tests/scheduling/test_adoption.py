"""Admission objects that are not as a policy says degrade it, until they are."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.adoption.admission_objects import admission_objects
from plimsoll.api.v1alpha1 import SchedulingPolicy
from plimsoll.kube.session.errors import Unauthorized, Unavailable
from plimsoll.scheduling.adoption import NOT_APPLIED, NOT_COMPARED, Adoption
from plimsoll.testing.fakes import FakeClock, RememberingObserver
from plimsoll.timing.signal import Signal

ADOPT = {"namespaces": {"include": ["shop"]}}
POLICY = SchedulingPolicy.model_validate(
    {"metadata": {"name": "web"}, "spec": {"scheduling": {"schedulerName": "plimsoll", "adopt": ADOPT}}}
)


class Server:
    """An API server with admission objects."""

    def __init__(self) -> None:
        self.served = "v1"
        self.objects: list[Any] = list(admission_objects(POLICY, "plimsoll"))
        self.error: Exception | None = None

    async def served_version(self) -> str:
        """The version of the kinds."""
        if self.error is not None:
            raise self.error
        return self.served

    async def read(self, wanted: Any) -> Any:
        """What is there."""
        return self.objects[: len(wanted)]


@pytest.fixture
def server() -> Server:
    """The API server."""
    return Server()


@pytest.fixture
def adoption(server: Server) -> Adoption:
    """What compares."""
    return Adoption(server, "plimsoll", FakeClock(), RememberingObserver(), Signal())


async def test_what_is_as_the_policy_says_is_no_trouble(adoption: Adoption) -> None:
    await adoption.look([POLICY])

    assert adoption.troubles("web") == {}
    assert adoption._conditions.count == 0


async def test_a_difference_is_said_until_it_is_mended(server: Server, adoption: Adoption) -> None:
    server.objects[1] = None
    await adoption.look([POLICY])
    await adoption.look([POLICY])
    count = adoption._conditions.count
    said = adoption.troubles("web")[NOT_APPLIED]
    server.objects = list(admission_objects(POLICY, "plimsoll"))
    await adoption.look([POLICY])

    assert said == (
        "MutatingAdmissionPolicyBinding plimsoll-adopt-web does not exist: plimsoll adopt web --apply"
    )
    assert (count, adoption.troubles("web")) == (1, {})


async def test_a_missing_right_is_said_and_silence_changes_nothing(
    server: Server, adoption: Adoption
) -> None:
    server.error = Unauthorized("GET", 403, "Forbidden", "may not get")
    await adoption.look([POLICY])
    server.error = Unavailable("GET")
    await adoption.look([POLICY])

    assert list(adoption.troubles("web")) == [NOT_COMPARED]
    assert "deploy/components/adoption" in adoption.troubles("web")[NOT_COMPARED]


async def test_a_server_without_the_kinds_and_a_policy_that_is_gone_are_no_trouble(
    server: Server, adoption: Adoption
) -> None:
    server.objects = [None, None]
    await adoption.look([POLICY])
    before = adoption.troubles("web")
    await adoption.look([])
    server.served = ""
    after = adoption.troubles("web")
    await adoption.look([POLICY])

    assert before
    assert (after, adoption.troubles("web")) == ({}, {})
