"""The defaults and bounds of LimitRanges, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.model.autoscalers.limit_ranges import ANNOTATION, ranges_of, refusal, with_defaults
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.limit_range import LimitRange, LimitRanges
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod import Pod

Document = dict[str, Any]


def a_pod(said: str = "", init: Document | None = None, **resources: Document) -> Pod:
    """A pod with the container app, and perhaps an init container."""
    return convert(
        Pod,
        {
            "metadata": {
                "name": "web",
                "namespace": "shop",
                "annotations": {ANNOTATION: said} if said else {},
            },
            "spec": {
                "containers": [{"name": "app", "resources": resources}],
                "initContainers": [] if init is None else [{"name": "first", **init}],
            },
        },
    )


def objects(*limits: Document, name: str = "limits") -> ClusterObjects:
    """The objects of a cluster with one LimitRange in the pod's namespace."""
    found = ClusterObjects()
    document = {"metadata": {"name": name, "namespace": "shop"}, "spec": {"limits": limits}}
    found.ledger(LimitRanges).replace(None, convert(LimitRange, document))
    return found


def container(**fields: Document) -> Document:
    """A limit for containers."""
    return {"type": "Container", **fields}


SAID = "LimitRanger plugin set: cpu, memory request for container app; cpu limit for container app"


@pytest.mark.parametrize(
    ("said", "limits", "requests", "limited"),
    [
        pytest.param("", (), {"cpu": "1"}, {"cpu": "2"}, id="no LimitRange"),
        pytest.param(SAID, (), {}, {}, id="its LimitRange has gone"),
        pytest.param(SAID, (container(defaultRequest={"cpu": "3"}),), {"cpu": "3"}, {}, id="another default"),
        pytest.param(
            "",
            (container(defaultRequest={"cpu": "3"}),),
            {"cpu": "1"},
            {"cpu": "2"},
            id="stated by the owner",
        ),
        pytest.param(
            "LimitRanger plugin set: cpu request for container other",
            (container(defaultRequest={"cpu": "3"}),),
            {"cpu": "1"},
            {"cpu": "2"},
            id="set for another container",
        ),
        pytest.param(
            "LimitRanger plugin set: cpu limit for init container app",
            (container(default={"cpu": "3"}),),
            {"cpu": "1"},
            {"cpu": "2"},
            id="set for an init container of the name",
        ),
        pytest.param(
            "",
            (container(default={"memory": "1Gi"}, defaultRequest={"memory": "1Gi"}),),
            {"cpu": "1", "memory": "1Gi"},
            {"cpu": "2", "memory": "1Gi"},
            id="a LimitRange that is new",
        ),
        pytest.param(
            "",
            ({"type": "Pod", "default": {"memory": "1Gi"}},),
            {"cpu": "1"},
            {"cpu": "2"},
            id="defaults are for containers",
        ),
        pytest.param("odd", (), {"cpu": "1"}, {"cpu": "2"}, id="an annotation of somebody else"),
    ],
)
def test_what_a_new_pod_gets(said: str, limits: Any, requests: Document, limited: Document) -> None:
    """A pod whose cpu is 1 with a limit of 2."""
    pod = a_pod(said, requests={"cpu": "1"}, limits={"cpu": "2"})
    made = with_defaults(pod, ranges_of("shop", objects(*limits)))

    (app,) = made.spec.containers
    assert (dict(app.resources.requests), dict(app.resources.limits)) == (requests, limited)


def test_the_default_of_the_first_name_counts() -> None:
    """The API server takes that of the LimitRange that it applies first."""
    both = objects(container(defaultRequest={"cpu": "2"}), name="b")
    document = {"metadata": {"name": "a", "namespace": "shop"}}
    first = convert(LimitRange, document | {"spec": {"limits": [container(defaultRequest={"cpu": "1"})]}})
    both.ledger(LimitRanges).replace(None, first)

    made = with_defaults(a_pod(), ranges_of("shop", both))
    assert made.spec.containers[0].resources.requests["cpu"] == "1"

    both.ledger(LimitRanges).replace(first, None)
    made = with_defaults(a_pod(), ranges_of("shop", both))
    assert made.spec.containers[0].resources.requests["cpu"] == "2"


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (container(min={"cpu": "1"}), ""),
        (container(min={"cpu": "1001m"}), "minimum cpu usage per Container is 1001m, but request is 1"),
        (
            container(min={"memory": "1Gi"}),
            "minimum memory usage per Container is 1Gi, and no request is specified",
        ),
        (container(max={"cpu": "4"}), ""),
        (container(max={"cpu": "3"}), "maximum cpu usage per Container is 3, but limit is 4"),
        (
            container(max={"memory": "1Gi"}),
            "maximum memory usage per Container is 1Gi, and no limit is specified",
        ),
        (container(maxLimitRequestRatio={"cpu": "4"}), ""),
        (
            container(maxLimitRequestRatio={"cpu": "3500m"}),
            "cpu max limit to request ratio per Container is 3500m, but provided ratio is 4",
        ),
        (
            container(maxLimitRequestRatio={"memory": "2"}),
            "memory max limit to request ratio per Container is 2, but request is not specified",
        ),
        ({"type": "Pod", "max": {"cpu": "4"}}, ""),
        ({"type": "Pod", "max": {"cpu": "3"}}, "maximum cpu usage per Pod is 3, but limit is 4"),
        ({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, ""),
        (container(max={"cpu": "four"}), "maximum cpu usage per Container is four, but limit is 4"),
    ],
)
def test_what_would_be_refused(limit: Document, said: str) -> None:
    """A pod whose cpu is 1 with a limit of 4."""
    found = refusal(a_pod(requests={"cpu": "1"}, limits={"cpu": "4"}), objects(limit))

    of = " (container app)" if limit["type"] == "Container" else ""
    assert found == (f"LimitRange shop/limits would refuse it: {said}{of}" if said else "")


@pytest.mark.parametrize(
    ("init", "most", "is_refused"),
    [
        ({"resources": {"limits": {"cpu": "5"}}}, "5", False),
        ({"resources": {"limits": {"cpu": "5"}}}, "4", True),
        ({"resources": {"limits": {"cpu": "1"}}, "restartPolicy": "Always"}, "5", False),
        ({"resources": {"limits": {"cpu": "1"}}, "restartPolicy": "Always"}, "4", True),
    ],
)
def test_init_containers_and_sidecars_of_a_pod(init: Document, most: str, is_refused: bool) -> None:
    """The larger of both counts, and a sidecar runs with the others."""
    pod = a_pod(init=init, limits={"cpu": "4"})

    assert bool(refusal(pod, objects({"type": "Pod", "max": {"cpu": most}}))) is is_refused
