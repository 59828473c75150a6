"""Placement: bindings that break a promise, each with a neighbour that does not."""

from typing import Any

import pytest

from promises.streams import Stream, a_cluster, merged

OVER = "red over-committed n2 by new: "


def container(**given: Any) -> dict[str, Any]:
    """Changes of a pod: its only container."""
    return {"spec": {"containers": [{"name": "main", **given}]}}


def asks(**amounts: str) -> dict[str, Any]:
    """Changes of a pod: what its container asks for."""
    return container(resources={"requests": amounts})


def port(number: int = 80, **given: Any) -> dict[str, Any]:
    """Changes of a pod: a port of its node."""
    return container(ports=[{"containerPort": 1, "hostPort": number, **given}])


def bound(stream: Stream, name: str, node: str = "n2", **changes: Any) -> None:
    """A new pod that the operator binds."""
    stream.pod(name, **changes)
    stream.bind(name, node)


def test_a_pod_stays_on_its_node() -> None:
    """Also when people write it; one that is gone may come again elsewhere."""
    stream = a_cluster()
    stream.change("pods", "web-1", {"spec": {"nodeName": "n2"}})
    stream.delete("pods", "web-2")
    stream.pod("web-2", "n2")

    assert stream.said == ["web-1 was moved from n1 to n2"]


def test_a_binding_names_the_pod_that_was_meant() -> None:
    """By its uid."""
    stream = a_cluster()
    stream.pod("new")
    stream.bind("new", "n2", uid="uid-old")

    assert stream.said == ["the binding of new named the uid uid-old, the pod has uid-new"]


def test_only_the_leader_binds() -> None:
    """The other one never had the lease."""
    stream = a_cluster()
    stream.pod("new")
    stream.bind("new", "n2", by="blue")

    assert stream.said == ["blue bound new to n2, but the lease is held by red-id"]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        pytest.param(asks(cpu="2"), asks(cpu="2"), [], id="just-fit"),
        pytest.param(
            asks(cpu="2"), asks(cpu="2001m"), [OVER + "4001 of 4000 milli cpu"], id="a-thousandth-more"
        ),
        pytest.param(
            merged(asks(cpu="3"), {"status": {"phase": "Succeeded"}}), asks(cpu="2"), [], id="one-has-ended"
        ),
        pytest.param(
            merged(asks(cpu="3"), {"metadata": {"deletionTimestamp": "now"}}),
            asks(cpu="2"),
            [OVER + "5000 of 4000 milli cpu"],
            id="one-is-leaving",
        ),
        pytest.param(
            {},
            asks(**{"example.com/gpu": "1"}),
            [OVER + "1000 of 0 milli example.com/gpu"],
            id="no-such-resource",
        ),
        pytest.param(port(), port(81), [], id="two-ports"),
        pytest.param(port(), port(), [OVER + "old has port 80, too"], id="one-port"),
        pytest.param(port(), port(protocol="UDP"), [], id="two-protocols"),
        pytest.param(port(), port(protocol="TCP"), [OVER + "old has port 80, too"], id="tcp-is-usual"),
        pytest.param(port(hostIP="10.0.0.1"), port(hostIP="10.0.0.2"), [], id="two-addresses"),
        pytest.param(
            port(hostIP="10.0.0.1"),
            port(hostIP="10.0.0.1"),
            [OVER + "old has port 80, too"],
            id="one-address",
        ),
        pytest.param(port(hostIP="10.0.0.1"), port(), [OVER + "old has port 80, too"], id="any-address"),
        pytest.param(port(0), port(0), [], id="no-port"),
        pytest.param(
            {"spec": {"initContainers": [{"restartPolicy": "Always", "ports": [{"hostPort": 80}]}]}},
            port(),
            [OVER + "old has port 80, too"],
            id="port-of-a-sidecar",
        ),
        pytest.param(
            {"spec": {"initContainers": [{"ports": [{"hostPort": 80}]}]}},
            port(),
            [],
            id="port-of-an-init-container",
        ),
    ],
)
def test_two_bindings_to_one_node(first: dict[str, Any], second: dict[str, Any], said: list[str]) -> None:
    """The pods that the operator bound fit together."""
    stream = a_cluster()
    bound(stream, "old", **merged(first, {"status": None}))
    stream.change("pods", "old", {key: first[key] for key in ("status", "metadata") if key in first})
    bound(stream, "new", **second)

    assert stream.said == said


@pytest.mark.parametrize(("seconds", "said"), [(29.0, []), (30.0, [OVER + "5000 of 4000 milli cpu"])])
def test_what_another_has_placed_counts_when_it_must_be_known(seconds: float, said: list[str]) -> None:
    """A watch may be half a minute behind."""
    stream = a_cluster()
    stream.pod("foreign", "n2", **asks(cpu="3"))
    stream.wait(seconds)
    stream.lead()
    bound(stream, "new", **asks(cpu="2"))

    assert stream.said == said


def test_a_pod_of_the_same_name_is_another_one() -> None:
    """It took the room a moment ago, though one of its name was there long before."""
    stream = a_cluster()
    stream.pod("foreign", "n2", **asks(cpu="3"))
    stream.wait(40.0)
    stream.lead()
    stream.pod("foreign", "n2", **merged(asks(cpu="3"), {"metadata": {"uid": "another"}}))
    bound(stream, "new", **asks(cpu="2"))

    assert stream.said == []


@pytest.mark.parametrize(("seconds", "said"), [(29.0, []), (30.0, [OVER + "3000 of 2000 milli cpu"])])
def test_a_node_counts_as_the_largest_that_it_was_lately(seconds: float, said: list[str]) -> None:
    """It shrank half a minute ago."""
    stream = a_cluster()
    stream.node("n2", cpu="2")
    stream.wait(seconds)
    bound(stream, "new", **asks(cpu="3"))

    assert stream.said == said


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        pytest.param(container(), [], id="asks-for-nothing"),
        pytest.param(asks(cpu="0", memory="1Mi"), [], id="asks-for-something-else"),
        pytest.param(asks(cpu="1m"), [OVER + "3001 of 1000 milli cpu"], id="asks-for-more"),
    ],
)
def test_what_a_node_lacks_since_before_concerns_only_pods_that_ask_for_it(
    pod: dict[str, Any], said: list[str]
) -> None:
    """The node has shrunk; a pod that asks for nothing finds room there, as upstream."""
    stream = a_cluster()
    bound(stream, "first", **asks(cpu="3"))
    stream.change("nodes", "n2", {"status": {"allocatable": {"cpu": "1", "memory": "8Gi", "pods": "9"}}})
    stream.wait(600.0)
    stream.lead()
    bound(stream, "new", **pod)

    assert stream.said == said


def test_a_node_that_is_not_there_has_no_room_to_judge() -> None:
    """A name alone."""
    stream = a_cluster()
    bound(stream, "new", node="n9")

    assert stream.said == []


TAINT = {"key": "t", "value": "v", "effect": "NoSchedule"}
REPELS = ["red bound new to n2, which repels it"]


@pytest.mark.parametrize(
    ("node", "pod", "said"),
    [
        pytest.param({}, {}, [], id="plain"),
        pytest.param({"spec": {"unschedulable": True}}, {}, REPELS, id="cordoned"),
        pytest.param(
            {"spec": {"unschedulable": True}},
            {"spec": {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]}},
            [],
            id="cordon-tolerated",
        ),
        pytest.param({"spec": {"taints": [TAINT]}}, {}, REPELS, id="taint"),
        pytest.param({"spec": {"taints": [{**TAINT, "effect": "NoExecute"}]}}, {}, REPELS, id="execute"),
        pytest.param({"spec": {"taints": [{**TAINT, "effect": "PreferNoSchedule"}]}}, {}, [], id="prefer"),
        pytest.param(
            {"spec": {"taints": [TAINT]}},
            {"spec": {"tolerations": [{"key": "t", "value": "v"}]}},
            [],
            id="tolerated",
        ),
        pytest.param(
            {"spec": {"taints": [TAINT]}},
            {"spec": {"tolerations": [{"key": "t", "value": "w"}]}},
            REPELS,
            id="another-value",
        ),
        pytest.param(
            {"spec": {"taints": [TAINT]}},
            {"spec": {"tolerations": [{"key": "u", "operator": "Exists"}]}},
            REPELS,
            id="another-key",
        ),
        pytest.param(
            {"spec": {"taints": [TAINT]}},
            {"spec": {"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}},
            REPELS,
            id="another-effect",
        ),
        pytest.param(
            {"spec": {"taints": [TAINT]}},
            {"spec": {"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]}},
            [],
            id="everything-tolerated",
        ),
        pytest.param(
            {"spec": {"taints": [{**TAINT, "value": None}]}},
            {"spec": {"tolerations": [{"effect": "NoSchedule"}]}},
            REPELS,
            id="a-key-is-needed",
        ),
        pytest.param(
            {"spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]}},
            {"spec": {"tolerations": [{"key": "t"}]}},
            [],
            id="no-value",
        ),
        pytest.param({}, {"spec": {"nodeSelector": {"disk": "ssd"}}}, REPELS, id="selector"),
        pytest.param(
            {"metadata": {"labels": {"disk": "ssd"}}},
            {"spec": {"nodeSelector": {"disk": "ssd"}}},
            [],
            id="selected",
        ),
    ],
)
def test_nodes_that_repel_a_pod(node: dict[str, Any], pod: dict[str, Any], said: list[str]) -> None:
    """By taints, a cordon or the pod's nodeSelector, for longer than a watch is behind."""
    stream = a_cluster()
    stream.node("n2", **node)
    stream.wait(30.0)
    bound(stream, "new", **pod)

    assert stream.said == said


def test_a_taint_that_was_just_set_is_not_known() -> None:
    """Who decides sees the node of half a minute ago."""
    stream = a_cluster()
    stream.node("n2", spec={"taints": [TAINT]})
    stream.wait(29.0)
    bound(stream, "new")

    assert stream.said == []


@pytest.mark.parametrize(
    ("limit", "said"), [(2, []), (1, [OVER + "2 volumes of csi.example, 1 may be attached"])]
)
def test_volumes_that_a_node_may_attach(limit: int, said: list[str]) -> None:
    """Each counts once; those of other drivers, and unbound claims, do not."""
    stream = a_cluster()
    drivers = [{"name": "csi.example", "allocatable": {"count": limit}}, {"name": "unlimited"}]
    stream.put("csinodes.storage.k8s.io", {"metadata": {"name": "n2"}, "spec": {"drivers": drivers}})
    for name, driver in (("a", "csi.example"), ("b", "csi.example"), ("c", "unlimited")):
        stream.put("persistentvolumes", {"metadata": {"name": name}, "spec": {"csi": {"driver": driver}}})
        meta = {"name": f"claim-{name}", "namespace": "default"}
        stream.put("persistentvolumeclaims", {"metadata": meta, "spec": {"volumeName": name}})
    stream.put("persistentvolumeclaims", {"metadata": {"name": "loose", "namespace": "default"}, "spec": {}})

    def claims(*names: str) -> dict[str, Any]:
        return {
            "volumes": [{"persistentVolumeClaim": {"claimName": each}} for each in names] + [{"emptyDir": {}}]
        }

    bound(stream, "old", spec=claims("claim-a", "claim-c"))
    bound(stream, "new", spec=claims("claim-a", "claim-b", "loose", "unknown"))

    assert stream.said == said


def left_to_an_extender(*, ignored: bool, scheduler: str = "plimsoll") -> dict[str, Any]:
    """The spec of a policy that has gadgets managed by an extender."""
    managed = {"name": "example.com/gadget", "ignoredByScheduler": ignored}
    return {"scheduling": {"schedulerName": scheduler, "extenders": [{"managedResources": [managed]}]}}


CROWDED = [OVER + "1000 of 0 milli example.com/gadget"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        pytest.param(left_to_an_extender(ignored=True), [], id="ignored"),
        pytest.param(left_to_an_extender(ignored=False), CROWDED, id="also-counted"),
        pytest.param(left_to_an_extender(ignored=True, scheduler="another"), CROWDED, id="elsewhere"),
    ],
)
def test_a_resource_that_is_left_to_an_extender_is_its_affair(spec: dict[str, Any], said: list[str]) -> None:
    """The policy of the pod's scheduler says so."""
    stream = a_cluster()
    stream.policy("serve", moves=False, **spec)
    bound(stream, "new", **asks(**{"example.com/gadget": "1"}))

    assert stream.said == said
