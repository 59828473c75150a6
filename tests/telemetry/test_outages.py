"""Log lines while the API server fails: one for each change, then one a minute."""

from __future__ import annotations

import logging
from logging import LogRecord
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from plimsoll.telemetry.outages import FORGOTTEN_S, REPEAT_S, KopfLines, OutageLog

RESOURCES = [f"resource-{number}" for number in range(18)]


class Scene:
    """An outage log, and what it says."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.log = OutageLog(lambda: self.time, "https://a")
        self.said: list[Any] = []

    def fail(self, problem: str, status: int, resources: Any = RESOURCES) -> None:
        """Each resource fails."""
        for each in resources:
            self.log.watch_failed(each, f"GET /{each}: {problem}", status)

    def look(self, after_s: float = 1.0) -> Any:
        """What is said after a while."""
        self.time += after_s
        with capture_logs() as lines:
            self.log._log = structlog.get_logger("plimsoll")
            self.log.look()
        return lines


@pytest.fixture
def scene() -> Scene:
    """A log that has said nothing."""
    return Scene()


def test_an_outage_is_a_line_then_one_a_minute_then_its_end(scene: Scene) -> None:
    """Eighteen collections fail at each back-off."""
    lines = []
    for second in range(130):
        if second % 3 == 0:
            scene.fail("ClientConnectorError: refused", 0, RESOURCES[: 1 + second % 18])
        lines += scene.look()

    assert [line["event"] for line in lines] == ["the API server does not answer"] * 3
    assert [line.get("for_s") for line in lines] == [None, 60, 120]
    assert "check its address" in lines[0]["remedy"]
    for each in RESOURCES:
        scene.log.watch_heard(each, 0)
    (line,) = scene.look()
    assert line["event"] == "the API server answers again"
    assert line["after_s"] == 130


def test_a_failure_that_is_over_before_anybody_looks_is_not_told(scene: Scene) -> None:
    """Metrics count it."""
    scene.fail("reset", 0)
    for each in RESOURCES:
        scene.log.watch_heard(each, 0)

    assert scene.look() == []


def test_missing_rights_are_one_line_with_what_they_are_missing_for(scene: Scene) -> None:
    """A further one is news, one that comes and goes is not."""
    scene.fail("403 Forbidden", 403, ["pods", "nodes"])
    (line,) = scene.look()
    assert line["event"] == "the API server forbids requests"
    assert line["resources"] == "nodes, pods"
    assert "roles of deploy/" in line["remedy"]
    assert scene.look() == []
    scene.fail("403 Forbidden", 403, ["services"])
    (line,) = scene.look()
    assert line["resources"] == "nodes, pods, services"
    scene.log.watch_heard("services", 0)
    assert scene.look() == []
    scene.fail("403 Forbidden", 403, ["services"])

    assert scene.look() == []
    assert len(scene.look(REPEAT_S)) == 1


def test_many_resources_are_counted(scene: Scene) -> None:
    """A line stays short."""
    scene.fail("x" * 5000, 403)
    (line,) = scene.look()

    assert line["resources"].endswith("and 12 more")
    assert len(line["problem"]) <= 200


def test_a_failure_that_does_not_come_again_is_forgotten(scene: Scene) -> None:
    """Kopf does not say that a request was answered at last."""
    scene.fail("", 404, ["schedulingpolicies"])
    assert scene.look()[0]["event"] == "the API server does not serve resources"

    assert scene.look(FORGOTTEN_S)[0]["event"] == "the API server serves the resources now"


# -- kopf --------------------------------------------------------------------------------------------


def record(message: str, name: str = "kopf._cogs.clients.api", error: ValueError | None = None) -> LogRecord:
    """A line of a library's."""
    exc_info = (type(error), error, None) if error else None
    return logging.LogRecord(name, logging.ERROR, "", 1, message, (), exc_info)


def test_what_kopf_says_of_its_requests_joins_the_outages(scene: Scene) -> None:
    """In one form, and not once a request."""
    lines = KopfLines(scene.log, failed=print)
    url = "https://a/apis/plimsoll.dev/v1alpha1/evictions?watch=true"
    for error, event in (
        ("ClientConnectorError('refused')", "does not answer"),
        ("APIForbiddenError('no')", "forbids requests"),
        ("APIServerError('broken')", "fail"),
    ):
        assert not lines.filter(record(f"Request attempt #1 failed; will retry: GET {url} -> {error}"))
        assert event in scene.look()[-1]["event"]
        assert list(scene.log._failures) == ["evictions (kopf)"]
    closed = "ClientConnectionError('Connector is closed.')"
    assert not lines.filter(record(f"Request attempt #2 failed; will retry: GET https://a/api -> {closed}"))
    assert "api (kopf)" not in scene.log._failures


def test_custom_resources_that_kopf_misses_are_reported_as_ours_are(scene: Scene) -> None:
    """With what to do."""
    lines = KopfLines(scene.log, failed=print)
    text = "Unresolved resources cannot be served (try creating their CRDs): "
    text += "Selector(group='plimsoll.dev', version='v1alpha1', any_name='schedulingpolicies')"
    assert not lines.filter(record(text))
    (line,) = scene.look()

    assert line["resources"] == "schedulingpolicies"
    assert "crds/" in line["remedy"]


def test_a_task_of_kopfs_that_ends_is_passed_on(scene: Scene) -> None:
    """The process ends, and says so then: kopf itself may go on without a watcher."""
    failed: list[Any] = []
    lines = KopfLines(scene.log, failed.append)
    one = record("Watcher for evictions.v1alpha1.plimsoll.dev has failed: no", error=ValueError("no"))

    assert not lines.filter(one)
    assert failed == ["Watcher for evictions.v1alpha1.plimsoll.dev has failed: no"]


def test_what_others_say_is_shown_as_it_is(scene: Scene) -> None:
    """Their tracebacks, too."""
    one = record("Task exception was never retrieved", "asyncio", ValueError("no"))

    assert KopfLines(scene.log, print).filter(one)
    assert one.exc_info is not None
