"""Log lines: contents, frequency and length."""

import io
import logging

from structlog.testing import capture_logs

from plimsoll.framework import PluginError
from plimsoll.framework.plugin_answers import judged
from plimsoll.telemetry.logs import REMEMBERED, REPEATED_AFTER_S, SHOWN, LimitedHandler, LoggingObserver
from plimsoll.testing.fakes import FakeClock


def test_a_problem_with_an_object_is_logged_once_and_in_short() -> None:
    """An object comes in with each of its changes, and a hostile one is megabytes long."""
    observer = LoggingObserver()

    with capture_logs() as lines:
        for _ in range(195):
            observer.object_skipped("pods", "shop/odd", "no quantity: " + "9" * 3000)

    assert [line["name"] for line in lines] == ["shop/odd"]
    assert lines[0]["problem"].startswith("no quantity: 999")
    assert len(lines[0]["problem"]) <= SHOWN + 1


def test_another_problem_or_another_object_is_logged_too() -> None:
    """Only repetitions are suppressed."""
    observer = LoggingObserver()

    with capture_logs() as lines:
        for name, problem in (("a", "x"), ("b", "x"), ("a", "y"), ("a", "x")):
            observer.object_skipped("pods", name, problem)
        observer.object_skipped("nodes", "a", "x")

    assert [(line["resource"], line["name"], line["problem"]) for line in lines] == [
        ("pods", "a", "x"),
        ("pods", "b", "x"),
        ("pods", "a", "y"),
        ("nodes", "a", "x"),
    ]


def test_the_memory_of_logged_problems_is_bounded() -> None:
    """Pods with ever new names must not fill the memory."""
    observer = LoggingObserver()

    with capture_logs() as lines:
        for number in range(REMEMBERED + 1):
            observer.object_skipped("pods", f"pod-{number}", "x")
        observer.object_skipped("pods", f"pod-{REMEMBERED}", "x")
        observer.object_skipped("pods", "pod-0", "x")

    assert len(lines) == REMEMBERED + 2


def test_where_a_plugin_raised_is_logged_at_debug_and_a_slow_one_as_a_warning() -> None:
    """As often as the failure itself; its line has the sentence alone."""
    observer = LoggingObserver(FakeClock().monotonic)

    def broken() -> None:
        raise ValueError("boom")

    with capture_logs() as lines:
        for _ in range(2):
            try:
                judged("A", "filter", broken)
            except PluginError as exc:
                observer.plugin_failed(exc.plugin, exc.point, exc.problem, exc.trace)
            observer.plugin_slow("A", "score", 0.25)

    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("error", "plugin failed"),
        ("debug", "plugin raised"),
        ("warning", "plugin is slow"),
    ]
    assert "in broken" in lines[1]["trace"]
    assert "trace" not in lines[0]
    assert lines[2]["seconds"] == 0.25


def test_what_repeats_is_logged_once_a_minute_with_how_often() -> None:
    """A plugin that fails for every pod, at every attempt, must not fill the disk."""
    clock = FakeClock()
    observer = LoggingObserver(clock.monotonic)

    with capture_logs() as lines:
        for number in range(3):
            observer.plugin_failed("A", "filter", f"boom of pod {number}")
            observer.failed("scheduling", f"odd pod {number}")
        observer.plugin_failed("A", "score", "boom")
        clock.time += REPEATED_AFTER_S
        observer.plugin_failed("A", "filter", "boom of pod 3")
        observer.plugin_failed("A", "filter", "boom of pod 4")

    assert [(line.get("point", "-"), line["problem"], line.get("left_out", 0)) for line in lines] == [
        ("filter", "boom of pod 0", 0),
        ("-", "odd pod 0", 0),
        ("score", "boom", 0),
        ("filter", "boom of pod 3", 2),
    ]


def test_warnings_of_any_code_that_repeat_are_written_once_a_minute() -> None:
    """Those of libraries also if they differ in numbers, ours only if they are equal; other lines always."""
    clock, log = FakeClock(), io.StringIO()
    handler = LimitedHandler(clock.monotonic)
    handler.setStream(log)
    library = logging.Logger("library")  # noqa: LOG001 - no other test sees it
    library.addHandler(handler)

    def speak() -> None:
        for number in range(3):
            library.error("socket %d of <Task at 0x7f%d> fails", number, number)
            library.info("socket")
            library.warning({"event": "refused", "pod": f"web-{number}", "timestamp": clock.time})
            library.warning({"event": "full", "timestamp": number})

    speak()
    clock.time += REPEATED_AFTER_S
    speak()

    first, second = log.getvalue().splitlines()[:8], log.getvalue().splitlines()[8:]
    assert [line for line in first if "socket " in line] == ["socket 0 of <Task at 0x7f0> fails"]
    assert (sum(line == "socket" for line in first), sum("refused" in line for line in first)) == (3, 3)
    assert sum("full" in line for line in first) == 1
    assert [line for line in second if "socket " in line] == [
        "socket 0 of <Task at 0x7f0> fails (left out: 2)"
    ]
    assert [line for line in second if "full" in line] == [
        str({"event": "full", "timestamp": 0, "left_out": 2})
    ]
