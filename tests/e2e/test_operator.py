"""The operator as a process: ready, measured, ended, started before its custom resources exist."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e.conftest import define
from e2e.polls import eventually
from e2e.scene import Scene
from e2e.speaker import speaking
from plimsoll.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e


async def test_it_waits_for_its_custom_resources(
    start_roadstead: StartRoadstead, start_operator: Callable[[Path], Operator]
) -> None:
    """Started first, it serves policies as soon as they can exist, and ends within its grace period."""
    cluster = start_roadstead()
    operator = start_operator(cluster.kubeconfig).until_ready()

    async def said() -> str:
        return operator.said()

    await eventually(said, lambda text: "apply crds/" in text)
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        scene = await Scene(speaker).begin()
        await scene.node("a")
        await scene.policy({"scheduling": {"schedulerName": scene.scheduler}})
        await scene.pod("web")

        await scene.until_bound("web")
    assert await operator.stop() == 0, "it would have been ended by force"
    assert "contained failure" not in operator.said()


async def test_it_is_not_ready_before_it_has_seen_the_cluster(
    tmp_path: Path, start_operator: Callable[[Path], Operator]
) -> None:
    """An API server that does not answer is waited for, and /readyz says so."""
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text(
        "{apiVersion: v1, kind: Config, current-context: a,"
        " contexts: [{name: a, context: {cluster: a, user: a}}],"
        " clusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}], users: [{name: a, user: {}}]}"
    )
    operator = start_operator(nowhere)

    async def asked() -> tuple[int, str]:
        return operator.ask("/readyz")

    status, why = await eventually(asked, lambda answer: answer[0] != 0)

    assert status == 503
    assert "waiting for the first list of" in why
    assert "nodes" in why
    assert operator.status is None
    assert await operator.stop() == 0


async def test_probes_and_metrics_answer(scene: Scene, operator: Operator) -> None:
    """Liveness on one port; readiness and Prometheus' text on the other; placing pods is counted."""

    def counted() -> tuple[float, float]:
        return (
            operator.metric("plimsoll_scheduler_pod_scheduling_sli_duration_seconds_count", attempts="1"),
            operator.metric(
                "plimsoll_scheduler_plugin_evaluation_total", plugin="DefaultBinder", extension_point="Bind"
            ),
        )

    placed, asked = counted()  # of other scenes
    await scene.node("a")
    await scene.scheduling()
    await scene.pod("web")
    await scene.until_bound("web")

    async def bound() -> float:
        return operator.metric(
            "plimsoll_scheduler_schedule_attempts_total", profile=scene.scheduler, result="scheduled"
        )

    assert operator.ask("/healthz", operator.health_port)[0] == 200
    status, said = operator.ask("/readyz")
    assert (status, said.splitlines()[0]) == (200, "ok")
    assert said.splitlines()[1].startswith("leading as ")
    assert operator.ask("/healthz") == (200, "ok\n")
    assert await eventually(bound) == 1
    assert operator.metric("plimsoll_scheduler_cache_size", type="nodes") >= 1
    assert operator.metric("plimsoll_watch_lists_total", resource="pods") >= 1
    assert counted() == (placed + 1, asked + 1)


async def test_a_pod_that_waits_is_counted_with_who_rejected_it_until_it_waits_no_more(
    scene: Scene, operator: Operator
) -> None:
    """Gauges tell the present: one unschedulable pod, rejected by NodeResourcesFit, then none."""
    await scene.node("a", cpu="1")
    await scene.scheduling()
    await scene.pod("big", cpu="2")

    async def rejected() -> float:
        return operator.metric(
            "plimsoll_scheduler_unschedulable_pods", plugin="NodeResourcesFit", profile=scene.scheduler
        )

    assert await eventually(rejected, lambda pods: pods == 1) == 1
    assert operator.metric("plimsoll_scheduler_pending_pods") >= 1
    await scene.node("b", cpu="4")
    await scene.until_bound("big")
    assert await eventually(rejected, lambda pods: pods == 0) == 0


async def test_every_metric_is_on_its_page(scene: Scene, operator: Operator) -> None:
    """docs/metrics.md names all that a scrape shows, besides the process's and Python's own."""
    await scene.node("a")
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")

    status, text = operator.ask("/metrics")
    scraped = {tuple(line.split()[2:4]) for line in text.splitlines() if line.startswith("# TYPE ")}

    assert status == 200
    ours = {(name, kind) for name, kind in scraped if name.startswith("plimsoll_")}
    assert {name for name, kind in ours if f"| `{name}` | {kind} |" not in page} == set()
    assert len(ours) > 20
    assert "_created" not in text
    assert operator.metric("plimsoll_build_info", version=__version__) == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(None, "no usable configuration", id="missing"),
        pytest.param("{", "no usable configuration", id="no yaml"),
        pytest.param("[1]", "no usable configuration", id="no mapping"),
        pytest.param("apiVersion: v1\nkind: Config\n", "no usable configuration", id="empty"),
    ],
)
async def test_an_unusable_kubeconfig_is_one_sentence(
    content: str | None, said: str, tmp_path: Path, start_operator: Callable[[Path], Operator]
) -> None:
    """No stack trace, exit status 1."""
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    operator = start_operator(path)

    async def ended() -> int | None:
        return operator.status

    assert await eventually(ended, lambda status: status is not None) == 1
    assert said in operator.said()
    assert str(path) in operator.said()
    assert "Traceback" not in operator.said()
