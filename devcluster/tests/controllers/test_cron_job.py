"""CronJobs: times, concurrency, history, suspension."""

import datetime as dt
from typing import Any

import pytest

from roadstead.controllers.workloads.cron_schedule import schedule_of
from simulated_cluster import Simulation

CRON, JOBS = "cronjobs.batch", "jobs.batch"


@pytest.fixture
def cluster(simulation: Simulation) -> Simulation:
    return simulation.with_controllers()


def create(cluster: Simulation, schedule: str = "* * * * *", **spec: Any) -> None:
    pod = {"containers": [{"name": "main", "image": "app:1"}], "restartPolicy": "Never"}
    template = {"metadata": {"labels": {"of": "cron"}}, "spec": {"template": {"spec": pod}}}
    cluster.create("CronJob", "tick", resource=CRON, schedule=schedule, jobTemplate=template, **spec)
    cluster.settle()


def jobs(cluster: Simulation) -> Any:
    return [one["metadata"]["name"] for one in cluster.api.list(JOBS)]


def end(cluster: Simulation, phase: str = "Succeeded") -> None:
    """End the pods of all Jobs."""
    for pod in cluster.pods():
        if (pod.get("status") or {}).get("phase", "Pending") == "Pending":
            cluster.end(pod["metadata"]["name"], phase)
    cluster.settle()


MINUTE = int(dt.datetime(2026, 1, 1, tzinfo=dt.UTC).timestamp()) // 60


def test_a_job_is_created_each_minute(cluster: Simulation) -> None:
    """Named after the minute, owned by the CronJob, and counted in its status until it ends."""
    create(cluster)
    assert jobs(cluster) == []

    cluster.settle(60)

    assert jobs(cluster) == [f"tick-{MINUTE + 1}"]
    (job,) = cluster.api.list(JOBS)
    assert job["metadata"]["labels"]["of"] == "cron"
    assert job["metadata"]["annotations"] == {
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:01:00Z"
    }
    status = cluster.get(CRON, "tick")["status"]
    assert [one["uid"] for one in status["active"]] == [job["metadata"]["uid"]]
    assert status["lastScheduleTime"] == "2026-01-01T00:01:00Z"
    end(cluster)
    status = cluster.get(CRON, "tick")["status"]
    assert "active" not in status
    assert status["lastSuccessfulTime"].startswith("2026-01-01T00:01:00")
    assert (
        "SawCompletedJob",
        f"Saw completed job: tick-{MINUTE + 1}, condition: Complete",
    ) in cluster.events()


def test_of_missed_times_the_last_counts(cluster: Simulation) -> None:
    """As after a clock that was moved by an hour."""
    create(cluster)

    cluster.now += dt.timedelta(hours=1)
    cluster.settle()

    assert jobs(cluster) == [f"tick-{MINUTE + 60}"]


def test_a_job_that_missed_its_deadline_is_not_created(cluster: Simulation) -> None:
    create(cluster, "0 * * * *", startingDeadlineSeconds=100)
    cluster.now += dt.timedelta(minutes=62)

    cluster.settle()

    assert jobs(cluster) == []


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("Allow", [1, 2]), ("Forbid", [1]), ("Replace", [2])],
)
def test_the_policy_decides_about_jobs_that_still_run(
    cluster: Simulation, policy: str, expected: list[int]
) -> None:
    create(cluster, concurrencyPolicy=policy)

    cluster.settle(125)

    assert jobs(cluster) == [f"tick-{MINUTE + one}" for one in expected]


def test_a_suspended_one_creates_nothing_until_it_is_resumed(cluster: Simulation) -> None:
    create(cluster, suspend=True)
    cluster.settle(130)
    assert jobs(cluster) == []

    cluster.api.patch(CRON, "default", "tick", {"spec": {"suspend": False}})
    cluster.settle()

    assert jobs(cluster) == [f"tick-{MINUTE + 2}"]


def test_the_history_is_limited(cluster: Simulation) -> None:
    """One failed Job and two that succeeded stay."""
    create(cluster, successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
    for phase in ("Succeeded", "Succeeded", "Succeeded", "Failed", "Failed"):
        cluster.settle(60)
        job = cluster.api.list(JOBS)[-1]["metadata"]["name"]
        if phase == "Failed":
            cluster.api.patch(JOBS, "default", job, {"spec": {"backoffLimit": 0}})
        end(cluster, phase)

    cluster.api.patch(CRON, "default", "tick", {"spec": {"suspend": True}})
    cluster.settle()

    assert jobs(cluster) == [f"tick-{MINUTE + one}" for one in (2, 3, 5)]


def test_jobs_go_with_their_cron_job(cluster: Simulation) -> None:
    create(cluster)
    cluster.settle(60)

    cluster.api.delete(CRON, "default", "tick", propagation="Background")
    cluster.settle(120)

    assert jobs(cluster) == []


@pytest.mark.parametrize(
    ("schedule", "zone", "expected"),
    [
        ("*/15 3-4 * * *", "", "2026-01-01T03:00:00"),
        ("30 2 29 2 *", "", "2028-02-29T02:30:00"),
        ("0 12 * * MON-WED", "", "2026-01-05T12:00:00"),
        ("0 12 13 * 5", "", "2026-01-02T12:00:00"),
        ("0 0 * jun,Aug sun", "", "2026-06-07T00:00:00"),
        ("0 0 * * 7", "", "2026-01-04T00:00:00"),
        ("@monthly", "", "2026-02-01T00:00:00"),
        ("@every 90m", "", "2026-01-01T01:30:00"),
        ("0 9 * * *", "Asia/Tokyo", "2026-01-02T00:00:00"),
        ("30 2 29 3 *", "Europe/Berlin", "2027-03-29T00:30:00"),
    ],
)
def test_schedules_are_read_as_cron_reads_them(schedule: str, zone: str, expected: str) -> None:
    """The last is skipped in 2026, when clocks go from two to three that night."""
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

    found = schedule_of(schedule, zone).after(start)

    assert found is not None
    assert found.isoformat() == f"{expected}+00:00"


@pytest.mark.parametrize("schedule", ["61 * * * *", "* * * *", "x * * * *", "* * * * 8"])
def test_a_malformed_schedule_is_refused(schedule: str) -> None:
    with pytest.raises(ValueError, match=r"61|fields|x|8"):
        schedule_of(schedule)
