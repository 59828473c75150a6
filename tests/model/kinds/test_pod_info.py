"""Templates: one object for all pods of one shape, and none for shapes without pods."""

import gc
from typing import Any

import msgspec
import pytest

from plimsoll.model.kinds.pod_info import Templates, counts_the_same
from plimsoll.model.kinds.requests import bounded, existing, fit_score, nonzero_existing
from plimsoll.testing.builders import a_pod


def test_pods_of_one_shape_share_a_template() -> None:
    """Name and uid are no part of it."""
    templates = Templates()

    one, two = templates.info(a_pod("a")), templates.info(a_pod("b"))

    assert one.template is two.template
    assert len(templates) == 1


def test_shapes_without_pods_are_forgotten() -> None:
    """Every Job's pods carry labels of their own; years of them must not pile up."""
    templates = Templates()

    kept = [templates.info(a_pod(f"p-{number}", labels={"job": str(number)})) for number in range(100)]
    del kept[1:]
    gc.collect()

    assert len(templates) == 1
    assert templates.info(a_pod("again", labels={"job": "0"})).template is kept[0].template


@pytest.mark.parametrize("granted", [None, {"cpu": "1"}, {"cpu": "1000m"}, {"cpu": "2"}, {}])
@pytest.mark.parametrize("allocated", [{}, {"cpu": "1"}, {"cpu": "3"}])
@pytest.mark.parametrize("name", ["main", "side", "gone"])
def test_requests_are_those_of_the_status_whether_or_not_it_grants_the_spec(
    granted: dict[str, str] | None, allocated: dict[str, str], name: str
) -> None:
    """The shortcut for a status that grants the spec makes no difference."""
    status = {
        "name": name,
        "resources": None if granted is None else {"requests": granted},
        "allocatedResources": allocated,
    }
    pod = a_pod(
        cpu="1",
        node="n1",
        initContainers=[{"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}],
        status={"containerStatuses": [status]},
    )

    info = Templates().info(pod)

    assert info.requests == bounded(existing(pod))
    assert info.nonzero_cpu_milli == nonzero_existing(pod)["cpu"]


@pytest.mark.parametrize(
    ("cpu", "memory", "pod_level"),
    [("1", "1Mi", {}), ("1", "", {}), ("", "1Mi", {"cpu": "1"}), ("1", "1Mi", {"cpu": "2"})],
)
def test_templates_have_the_defaults_of_pods_that_name_no_amount(
    cpu: str, memory: str, pod_level: dict[str, str]
) -> None:
    """The shortcut for a pod whose containers name all makes no difference."""
    pod = a_pod(cpu=cpu, memory=memory, resources={"requests": pod_level})

    template = Templates().info(pod).template

    assert template.nonzero_requests == bounded(nonzero_existing(pod))
    assert template.score_requests == bounded(fit_score(pod))


def test_a_container_without_a_grant_hides_no_other() -> None:
    """The status of the first one may lag behind that of the second."""
    statuses = [{"name": "main"}, {"name": "other", "resources": {"requests": {"cpu": "3"}}}]
    containers = [{"name": name, "resources": {"requests": {"cpu": "1"}}} for name in ("main", "other")]
    pod = a_pod(node="n1", containers=containers, status={"containerStatuses": statuses})

    assert Templates().info(pod).requests == bounded(existing(pod)) == {"cpu": 4000}


def test_a_template_keeps_of_its_first_pod_only_what_decides() -> None:
    """It may live on with other pods of its shape when the first, with a megabyte of the rest, has gone."""
    templates = Templates()
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{n}", "uid": str(n)} for n in range(17)]
    first = a_pod(
        "first",
        metadata={"annotations": {"note": "x" * 1000}, "ownerReferences": owners},
        volumes=[{"name": f"v{number}", "secret": {"secretName": "s"}} for number in range(17)],
        status={"containerStatuses": [{"name": "main"}]},
    )
    assert (len(first.metadata.owner_references), len(first.spec.volumes)) == (17, 17)

    sample = templates.info(first).template.sample

    assert [*sample.metadata.annotations, *sample.metadata.owner_references] == []
    assert [*sample.spec.volumes, *sample.status.container_statuses] == []
    assert templates.info(first).template is templates.info(first).template


@pytest.mark.parametrize(
    "change",
    [
        {"requests": {"cpu": 2000}},
        {"nonzero_cpu_milli": 2000},
        {"nonzero_memory_bytes": 1},
        {"pod": a_pod("p", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})},
        {"pod": a_pod("p", metadata={"annotations": {"scheduling.k8s.io/group-name": "g"}})},
        {"template": Templates().info(a_pod("p", labels={"app": "other"})).template},
    ],
    ids=lambda change: next(iter(change)),
)
def test_states_that_differ_in_one_thing_count_again(change: dict[str, Any]) -> None:
    """What else the pod's object says is not counted."""
    info = Templates().info(a_pod("p"))
    renamed = a_pod("p", metadata={"annotations": {"example.com/note": "x"}})

    assert counts_the_same(info, msgspec.structs.replace(info, pod=renamed))
    assert not counts_the_same(info, msgspec.structs.replace(info, **change))
