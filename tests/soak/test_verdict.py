"""The verdict finds leaks in curves, and takes noise, steps and filling caches for what they are."""

from __future__ import annotations

import random

import pytest

from soak.diary import OF_CLUSTER, OF_PROCESSES
from soak.slope import slope
from soak.verdict import LOAD, REST_AFTER, REST_BEFORE, Row, Soaked

STEP_S = 10.0


def memory(minutes: float, mib_per_minute: float, *, noise: float = 0.2, start: float = 150.0) -> list[float]:
    """A curve of resident memory: a line under noise whose neighbours resemble each other."""
    rng, near, found = random.Random(1), 0.0, []
    for number in range(int(minutes * 60 / STEP_S)):
        near = 0.9 * near + rng.gauss(0, noise)
        found.append(start + mib_per_minute * number * STEP_S / 60 + near)
    return found


def rows(curve: list[float], phase: str = LOAD, *, begin_s: float = 0.0, **cells: str) -> list[Row]:
    """Samples of a replica, one each ten seconds."""
    common = {"name": "replica-a", "life": "1", "leads": "1", "phase": phase, "files": "60", "tasks": "90"}
    return [
        dict.fromkeys(OF_PROCESSES, "")
        | common
        | {"at_s": str(begin_s + number * STEP_S), "rss_mib": str(value)}
        | cells
        for number, value in enumerate(curve)
    ]


def soaked(
    under_load: list[Row],
    *,
    files_after: str = "60",
    cluster: tuple[Row, ...] = (),
    happenings: tuple[Row, ...] = (),
) -> Soaked:
    """A soak with quiet rests."""
    before = rows([150.0] * 4, REST_BEFORE)
    after = rows([150.0] * 4, REST_AFTER, begin_s=1e6, files=files_after)
    return Soaked([*before, *under_load, *after], cluster, happenings)


@pytest.mark.parametrize("minutes", [6, 60])
def test_a_leak_of_a_mebibyte_a_minute_is_found(minutes: float) -> None:
    """In six minutes as in an hour."""
    problems = soaked(rows(memory(minutes, 1.0))).problems()

    assert len(problems) == 1
    assert problems[0].startswith("replica-a, life 1, leader: rss_mib grows by")


@pytest.mark.parametrize("minutes", [6, 60])
def test_noise_is_no_leak(minutes: float) -> None:
    """Neither is a walk up and down."""
    assert soaked(rows(memory(minutes, 0.0))).problems() == []


def test_a_slow_leak_is_found_in_an_hour() -> None:
    """Four MiB an hour, with noise of one."""
    assert soaked(rows(memory(60, 4 / 60, noise=0.3))).problems()


def test_what_a_life_takes_in_its_first_minutes_and_as_leader_is_no_leak() -> None:
    """Caches fill once, and again when a standby becomes the leader."""
    filling = [150.0 + min(number, 30) for number in range(240)]
    leading = [200.0 + min(number, 30) for number in range(240)]
    curves = [*rows(filling, leads="0"), *rows(leading, begin_s=2400)]

    assert soaked(curves).problems() == []


def of_the_server(quiet_mib_per_hour: float, late_peak_mib: float) -> Soaked:
    """Two hours of an API server: fail-overs at both ends, peaks at the first, and a line between them."""
    fail_overs = [600.0, 1200.0, 1800.0, 5400.0, 6000.0, 6600.0]
    curve = [480.0 + (20.0 if number % 90 < 20 else 0.0) for number in range(180)]
    curve += memory(60, quiet_mib_per_hour / 60, noise=0.05, start=485.0)
    curve += [late_peak_mib] * 180
    said = tuple({"at_s": str(at), "kind": "fail-over", "text": ""} for at in fail_overs)
    return soaked(rows(curve, name="roadstead", leads="", files="", tasks=""), happenings=said)


def test_a_server_may_peak_at_late_fail_overs_as_it_did_at_early_ones() -> None:
    """It answers lists of everything then, and keeps the memory for the next."""
    assert of_the_server(0.0, 505.0).problems() == []


def test_a_server_that_grows_between_fail_overs_or_peaks_higher_is_found() -> None:
    """Sixteen MiB in the quiet hour; eleven above the early peak."""
    (grows,) = of_the_server(16.0, 500.0).problems()
    (peaks,) = of_the_server(0.0, 511.0).problems()

    assert grows.startswith("roadstead, life 1: rss_mib grows by")
    assert peaks == "roadstead: rss_mib reaches 511 at late fail-overs, 500 before them"


def test_files_that_stay_open_are_found() -> None:
    """At rest there are as many as before the load."""
    assert soaked(rows(memory(6, 0)), files_after="80").problems() == [
        "replica-a: files at rest: 80, before the load 60"
    ]


def test_a_pod_that_waits_and_records_that_are_kept_are_found() -> None:
    """Both are curves of the cluster."""
    row = dict.fromkeys(OF_CLUSTER, "0") | {
        "phase": LOAD,
        "oldest_waiting_s": "200",
        "records_enforced": "900",
    }

    assert soaked(rows(memory(6, 0)), cluster=(row,)).problems() == [
        "a pod waited for a node for 200 s",
        "records_enforced reached 900, of which the policy keeps 200",
    ]


def test_a_slope_has_its_interval() -> None:
    """A line has none to speak of, noise one around zero; three samples are too few."""
    line = slope([0, 1, 2, 3], [1, 3, 5, 7])
    assert (line.low, line.value, line.high) == pytest.approx((2, 2, 2))

    values = memory(60, 0)
    noise = slope([number / 360 for number in range(len(values))], values)
    assert noise.low < 0 < noise.high
    with pytest.raises(ValueError, match="four samples"):
        slope([0, 1, 2], [1, 2, 3])
