"""``plimsoll drain --wait`` reports how far the nodes are, and each end."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from cli.commands import Said, say
from cli.refusing_server import Refusing, kubeconfig_of, refusing_server
from plimsoll.cli.callers import maintenances

if TYPE_CHECKING:
    from collections.abc import Iterator
from pathlib import Path

Obj = dict[str, Any]

WAITING = {"name": "a", "phase": "Waiting", "pods": 3}
DONE = {"name": "a", "phase": "Drained", "pods": 0}
NEXT = {"name": "b", "phase": "Draining", "pods": 2}
STUCK = {"name": "b", "phase": "Blocked", "pods": 2, "message": "pod shop/solo: no owner"}
EMPTY = {"name": "b", "phase": "Drained", "pods": 0}


def status(phase: str, *nodes: Obj, message: str = "", **more: Any) -> Obj:
    """A status of the maintenance."""
    drained = sum(each["phase"] == "Drained" for each in nodes)
    conditions = [{"type": "Drained", "message": message}]
    return {"phase": phase, "drained": drained, "nodes": list(nodes), "conditions": conditions, **more}


class Maintained(Refusing):
    """A server with two nodes, whose maintenance has one status after another, and keeps the last."""

    statuses: ClassVar[list[Obj | None]] = []
    created: ClassVar[list[Obj]] = []

    def decide(self, _way: str, path: str, _query: dict[str, str], body: Any) -> tuple[int, Obj]:
        """Answer one request."""
        if self.command == "POST":
            Maintained.created.append(body)
            return 201, {}
        if not path.endswith("/nodemaintenances/a"):
            return 200, {"items": []}
        left = Maintained.statuses
        found = left.pop(0) if len(left) > 1 else left[0]
        return (404, {"code": 404, "reason": "NotFound"}) if found is None else (200, {"status": found})


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Its URL."""
    with refusing_server(Maintained) as url:
        yield url


@pytest.fixture
def kubeconfig(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kubeconfig of a server that is asked often."""
    monkeypatch.setattr(maintenances, "LOOK_S", 0.01)
    return kubeconfig_of(tmp_path / "kubeconfig", f"{server}/any")


def drained(kubeconfig: Path, *statuses: Obj | None, words: tuple[str, ...] = ("--wait",)) -> Said:
    """What the command says while the maintenance has these statuses."""
    Maintained.statuses = list(statuses)
    return say("drain", "a", "b", *words, "--kubeconfig", str(kubeconfig))


def test_each_change_is_printed_once_until_the_nodes_are_drained(kubeconfig: Path) -> None:
    """A bar, what is left, and when it is expected to end."""
    said = drained(
        kubeconfig,
        {},
        status("Pending", WAITING, NEXT),
        status("Pending", WAITING, NEXT),
        status("Draining", DONE, NEXT, expectedEnd="2026-11-29T12:00:00Z"),
        status("Draining", DONE, STUCK),
        status("Drained", DONE, EMPTY),
    )

    assert said.code == 0
    assert said.out.splitlines() == [
        "nodemaintenance.plimsoll.dev/a created",
        "[....................] 0 of 2 nodes drained, 5 pods to move",
        "[##########..........] 1 of 2 nodes drained, 2 pods to move, expected end 2026-11-29T12:00:00Z",
        "[##########..........] 1 of 2 nodes drained, 2 pods to move, b is blocked: pod shop/solo: no owner",
        "[####################] 2 of 2 nodes drained",
    ]


@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        (
            status("Stopped", DONE, NEXT, message="stopped: a move failed"),
            "is Stopped: stopped: a move failed",
        ),
        (status("Expired", DONE, NEXT, message="the deadline has passed"), "is Expired: the deadline has"),
        (status("Suspended", DONE, NEXT, message="spec.suspend is true"), "is Suspended: spec.suspend"),
        (status("Invalid", message="spec.window: it never opens"), "is Invalid: spec.window"),
        (None, "was deleted: its nodes are opened again"),
    ],
)
def test_another_end_is_an_error_that_says_why(kubeconfig: Path, ends: Obj | None, sentence: str) -> None:
    """So that a script does not go on."""
    said = drained(kubeconfig, status("Draining", DONE, NEXT), ends)

    assert said.code == 1
    assert sentence in said.err


def test_the_time_is_limited_and_the_maintenance_goes_on(kubeconfig: Path) -> None:
    """The command gives up; the operator does not."""
    waiting = status("Draining", DONE, NEXT, message="1 of 2 nodes is drained")

    said = drained(kubeconfig, waiting, words=("--wait", "--timeout", "50ms"))

    assert said.code == 1
    assert "goes on, and is not drained after 0.05 s: 1 of 2 nodes is drained" in said.err


@pytest.mark.parametrize(
    ("words", "window"),
    [
        ((), None),
        (
            ("--window", "0 3 * * *", "--duration", "2h"),
            {"schedule": "0 3 * * *", "duration": "2h"},
        ),
        (
            ("--window", "0 3 * * *", "--duration", "2h", "--time-zone", "Europe/Berlin"),
            {"schedule": "0 3 * * *", "duration": "2h", "timeZone": "Europe/Berlin"},
        ),
    ],
)
def test_the_window_is_written_as_it_was_said(
    kubeconfig: Path, words: tuple[str, ...], window: Obj | None
) -> None:
    Maintained.created.clear()
    drained(kubeconfig, {}, words=words)

    (created,) = Maintained.created
    assert created["spec"].get("window") == window


def test_without_waiting_the_next_command_is_printed(kubeconfig: Path) -> None:
    """As for other objects that take their time; a time limit without waiting is a mistake."""
    assert drained(kubeconfig, {}, words=()).out.splitlines()[-1].startswith("next: kubectl wait ")
    assert "--timeout needs --wait" in drained(kubeconfig, {}, words=("--timeout", "1h")).err


@pytest.mark.parametrize("word", ["--duration=2h", "--time-zone=Europe/Berlin"])
def test_a_part_of_a_window_without_a_window_is_refused(kubeconfig: Path, word: str) -> None:
    """Nothing is created."""
    Maintained.created.clear()

    said = drained(kubeconfig, {}, words=(word,))

    assert "--duration and --time-zone need --window" in said.err
    assert not Maintained.created


@pytest.mark.parametrize(("said", "seconds"), [("2h", 7200), ("90m", 5400), ("2100-01-02T03:04:05Z", None)])
def test_a_deadline_is_a_moment_or_so_far_ahead(kubeconfig: Path, said: str, seconds: int | None) -> None:
    """Elsewhere durations count backwards."""
    Maintained.created.clear()
    before = time.time()
    drained(kubeconfig, {}, words=("--deadline", said))

    (created,) = Maintained.created
    moment = datetime.fromisoformat(created["spec"]["deadline"]).timestamp()
    if seconds is None:
        assert created["spec"]["deadline"] == said
    else:
        assert before + seconds - 1 <= moment <= time.time() + seconds
