"""The limit of open files."""

import resource

import pytest
from structlog.testing import capture_logs

from plimsoll.app.machine.descriptors import NEEDED, raise_limit


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "lines"),
    [
        (256, 4096, [(4096, 4096)], 0),
        (4096, 4096, [], 0),
        (256, NEEDED - 1, [(NEEDED - 1, NEEDED - 1)], 1),
        (1024, resource.RLIM_INFINITY, [(resource.RLIM_INFINITY, resource.RLIM_INFINITY)], 0),
    ],
)
def test_the_limit_is_raised_and_one_that_is_too_low_is_logged(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, wanted: list[tuple[int, int]], lines: int
) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: given.append(limits))

    with capture_logs() as logged:
        assert raise_limit() == hard

    assert given == wanted
    assert [(line["event"], line["limit"], line["needed"]) for line in logged] == [
        ("the limit of open files is low", hard, NEEDED)
    ] * lines


def test_a_limit_that_cannot_be_raised_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS a hard limit that is unlimited cannot be set."""

    def refuse(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)

    with capture_logs() as logged:
        assert raise_limit() == 256

    assert len(logged) == 1
