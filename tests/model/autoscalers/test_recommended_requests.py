"""The requests that VPA's admission gives to a new pod, by arithmetic."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.model.autoscalers.recommended_requests import Autoscalers, recommended
from plimsoll.model.autoscalers.vertical_pod_autoscaler import VerticalPodAutoscaler
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.limit_range import LimitRange, LimitRanges
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import ReplicaSet

Document = dict[str, Any]

MEBI = 2**20
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def an_autoscaler(
    target: Document | None = None,
    *policies: Document,
    name: str = "web",
    kind: str = "ReplicaSet",
    created: str = EARLY,
    **update: Any,
) -> VerticalPodAutoscaler:
    """One of the controller web that recommends 2 cpu for the container app."""
    recommendation = {"containerName": "app", "target": {"cpu": "2"} if target is None else target}
    return convert(
        VerticalPodAutoscaler,
        {
            "metadata": {"name": name, "namespace": "shop", "creationTimestamp": created},
            "spec": {
                "targetRef": {"kind": kind, "name": "web"},
                "updatePolicy": update,
                "resourcePolicy": {"containerPolicies": policies},
            },
            "status": {"recommendation": {"containerRecommendations": [recommendation]}},
        },
    )


def policy(container: str = "app", **fields: Any) -> Document:
    """What may be changed of a container."""
    return {"containerName": container, **fields}


def a_pod(requests: Document | None = None, limits: Document | None = None, **owner: Any) -> Pod:
    """A pod of the ReplicaSet web, with a sidecar that has no recommendation."""
    resources = {"requests": {"cpu": "500m"} if requests is None else requests, "limits": limits or {}}
    reference = {"kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True, **owner}
    document = {
        "metadata": {"name": "web-1", "namespace": "shop", "ownerReferences": [reference]},
        "spec": {"containers": [{"name": "app", "resources": resources}, {"name": "proxy"}]},
    }
    return convert(Pod, document)


def admitted(
    pod: Pod,
    *autoscalers: VerticalPodAutoscaler,
    replica_sets: tuple[ReplicaSet, ...] = (),
    ranges: tuple[Document, ...] = (),
) -> Document:
    """Requests and limits of the first container of the new pod; the ranges are for containers."""
    objects = ClusterObjects(replica_sets={each.key: each for each in replica_sets})
    for number, one in enumerate(ranges):
        limit = {"metadata": {"name": str(number), "namespace": "shop"}, "spec": {"limits": [one]}}
        objects.ledger(LimitRanges).replace(None, convert(LimitRange, limit))
    for each in autoscalers:
        objects.ledger(Autoscalers).replace(None, each)
    app, proxy = recommended(pod, pod.spec.containers, objects)
    limits = {f"limit {name}": limit for name, limit in app.resources.limits.items()}

    assert proxy is pod.spec.containers[1]
    return {**app.resources.requests, **limits}


@pytest.mark.parametrize("mode", ["", "Auto", "Initial", "Recreate", "InPlaceOrRecreate"])
def test_in_every_mode_but_off_new_pods_get_the_recommendation(mode: str) -> None:
    """Whether that is more than the pod has, or less; no mode is Recreate."""
    policy: dict[str, Any] = {"updateMode": mode} if mode else {}
    autoscaler = an_autoscaler(**policy)

    assert admitted(a_pod({"cpu": "500m", "memory": "1Gi"}), autoscaler) == {"cpu": "2", "memory": "1Gi"}
    assert admitted(a_pod({"cpu": "4"}), autoscaler) == {"cpu": "2"}
    assert admitted(a_pod({}), autoscaler) == {"cpu": "2"}


@pytest.mark.parametrize(
    "autoscaler",
    [
        pytest.param(an_autoscaler(updateMode="Off"), id="off"),
        pytest.param(an_autoscaler(kind="StatefulSet"), id="another kind of controller"),
        pytest.param(an_autoscaler(kind="Deployment"), id="a Deployment that does not own the ReplicaSet"),
        pytest.param(an_autoscaler({"ephemeral-storage": "1Gi"}), id="neither cpu nor memory"),
        pytest.param(an_autoscaler(None, policy(controlledResources=["memory"])), id="cpu is not controlled"),
        pytest.param(an_autoscaler(None, policy(controlledResources=[])), id="nothing is controlled"),
        pytest.param(an_autoscaler(None, policy(mode="Off")), id="the container is off"),
        pytest.param(an_autoscaler(None, policy("*", mode="Off")), id="all containers are off"),
        pytest.param(
            an_autoscaler(None, policy("*"), policy(mode="Off")), id="its own policy goes before that of all"
        ),
    ],
)
def test_others_change_nothing(autoscaler: VerticalPodAutoscaler) -> None:
    """The requests stay as they are."""
    assert admitted(a_pod(), autoscaler) == {"cpu": "500m"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"maxAllowed": {"cpu": "1500m"}}, "1500m"),
        ({"minAllowed": {"cpu": "3"}}, "3"),
        ({"minAllowed": {"cpu": "3"}, "maxAllowed": {"cpu": "1"}}, "1"),  # the maximum comes last
        ({"minAllowed": {"cpu": "0"}, "maxAllowed": {"cpu": "0"}}, "2"),  # 0 is no bound
        ({"minAllowed": {"memory": "9Gi"}}, "2"),
    ],
)
def test_the_policy_caps_it(fields: Document, expected: str) -> None:
    """To the minimum, then to the maximum."""
    assert admitted(a_pod(), an_autoscaler(None, policy(**fields))) == {"cpu": expected}
    assert admitted(a_pod(), an_autoscaler(None, policy("*", **fields))) == {"cpu": expected}


@pytest.mark.parametrize(
    ("limit", "ranges", "fields", "expected"),
    [
        pytest.param("500m", [{"max": {"cpu": "1"}}], {}, ("1000m", "1000m"), id="limit-equals-request"),
        pytest.param("1", [{"max": {"cpu": "1"}}], {}, ("500m", "1000m"), id="the-limit-is-the-bound"),
        pytest.param("", [{"max": {"cpu": "1"}}], {}, ("2", None), id="no-limit-to-cap"),
        pytest.param("1", [{"min": {"cpu": "6"}}], {}, ("6", "12000m"), id="the-request-is-the-bound"),
        pytest.param("250m", [{"min": {"cpu": "6"}}], {}, ("12000m", "6000m"), id="a-lower-limit"),
        pytest.param("", [{"min": {"cpu": "3"}}], {}, ("3", None), id="least-without-a-limit"),
        pytest.param(
            "500m", [{"max": {"cpu": "1"}}, {"max": {"cpu": "1500m"}}], {}, ("1000m", "1000m"), id="strictest"
        ),
        pytest.param(
            "500m", [{"max": {"cpu": "1"}}], {"minAllowed": {"cpu": "3"}}, ("3", "3"), id="the-policy-is-last"
        ),
        pytest.param("500m", [{"max": {"memory": "1Gi"}}], {}, ("2", "2"), id="another-resource"),
        pytest.param("500m", [{"type": "Pod", "max": {"cpu": "1"}}], {}, ("2", "2"), id="of-whole-pods"),
    ],
)
def test_limit_ranges_cap_it(
    limit: str, ranges: list[Document], fields: Document, expected: tuple[str, str | None]
) -> None:
    """2 cpu are recommended to a container with 500m; the limit is kept in proportion."""
    pod = a_pod(limits={"cpu": limit} if limit else {})

    found = admitted(
        pod,
        an_autoscaler(None, *([policy(**fields)] if fields else [])),
        ranges=tuple({"type": "Container", **each} for each in ranges),
    )

    assert (found["cpu"], found.get("limit cpu")) == expected


def test_limits_keep_their_proportion_to_requests() -> None:
    """1 cpu for 500m is 4 for 2; 300 MiB for 200 is 750 for 500; a limit that stays caps the request."""
    autoscaler = an_autoscaler({"cpu": "2", "memory": str(500 * MEBI)})
    only_requests = an_autoscaler({"cpu": "2"}, policy(controlledValues="RequestsOnly"))
    both = {"cpu": "500m", "memory": "200Mi"}
    equal = {"cpu": "500m"}

    assert admitted(a_pod(both, {"cpu": "1", "memory": "300Mi"}), autoscaler) == {
        "cpu": "2",
        "memory": str(500 * MEBI),
        "limit cpu": "4000m",
        "limit memory": str(750 * MEBI),
    }
    assert admitted(a_pod(equal, equal), an_autoscaler()) == {"cpu": "2", "limit cpu": "2"}
    assert admitted(a_pod({"cpu": "0"}, equal), an_autoscaler()) == {"cpu": "2", "limit cpu": "2"}
    assert admitted(a_pod(equal, {"cpu": "1"}), only_requests) == {"cpu": "1", "limit cpu": "1"}


def test_an_autoscaler_names_the_topmost_controller() -> None:
    """The Deployment of a pod's ReplicaSet, not the ReplicaSet itself, and not that of a former one."""
    above = {"kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    document = {"metadata": {"name": "web", "namespace": "shop", "uid": "web", "ownerReferences": [above]}}
    owned = convert(ReplicaSet, document)
    deployment, replica_set = an_autoscaler(kind="Deployment"), an_autoscaler({"cpu": "3"})

    assert admitted(a_pod(), deployment, replica_sets=(owned,)) == {"cpu": "2"}
    assert admitted(a_pod(), replica_set, replica_sets=(owned,)) == {"cpu": "500m"}
    assert admitted(a_pod(uid="former"), deployment, replica_sets=(owned,)) == {"cpu": "500m"}
    assert admitted(a_pod(controller=False), replica_set) == {"cpu": "500m"}


def test_of_several_the_oldest_counts() -> None:
    """Of equally old ones, that whose name sorts first; one in mode Off does not count."""
    old, late = an_autoscaler({"cpu": "3"}, name="b"), an_autoscaler({"cpu": "4"}, name="a", created=LATE)
    twin, off = an_autoscaler({"cpu": "5"}, name="c"), an_autoscaler({"cpu": "6"}, name="0", updateMode="Off")

    assert admitted(a_pod(), late, twin, off, old) == {"cpu": "3"}


def test_an_autoscaler_can_change_and_go() -> None:
    """Its latest state counts, also for another controller; a copy keeps what it had."""
    ledger = Autoscalers()
    first, other = an_autoscaler(), an_autoscaler(kind="Deployment", name="other")
    controller = a_pod().metadata.owner_references[0]
    ledger.replace(None, first)
    ledger.replace(None, other)
    copy = ledger.copied()

    assert ledger.of("shop", controller) is first
    assert ledger.of("elsewhere", controller) is None
    ledger.replace(first, an_autoscaler(kind="Deployment"))
    assert ledger.of("shop", controller) is None
    assert [each.metadata.name for each in ledger.by_target["shop", "Deployment", "web"]] == ["other", "web"]
    ledger.replace(other, None)
    ledger.replace(an_autoscaler(kind="Deployment"), None)
    assert ledger.by_target == {}
    assert copy.of("shop", controller) is first


@pytest.mark.parametrize(
    ("autoscaler", "said"),
    [
        (an_autoscaler({"cpu": "many"}), "cpu of target of container app cannot be read"),
        (an_autoscaler(None, policy(minAllowed={"cpu": "1 core"})), "cpu of minAllowed of container app"),
        (an_autoscaler(None, policy("*", maxAllowed={"memory": "x"})), "memory of maxAllowed of container *"),
    ],
)
def test_amounts_that_are_no_quantities_are_named(autoscaler: VerticalPodAutoscaler, said: str) -> None:
    """With the field and the container."""
    (problem,) = autoscaler.unreadable()

    assert problem.startswith(said)
