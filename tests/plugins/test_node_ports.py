"""NodePorts: a host port is taken once a node."""

from typing import Any

import pytest

from plimsoll.framework import SKIP, SUCCESS, CycleState, NoArgs, unschedulable
from plimsoll.model.kinds.pod import Pod
from plimsoll.plugins.node_ports import HostPortIndex, NodePorts
from plimsoll.testing.builders import a_cluster, a_node, a_pod, a_snapshot, the_info
from plimsoll.testing.conformance import FilterPluginConformance

PLUGIN = NodePorts(NoArgs())


def with_ports(
    name: str,
    *ports: tuple[int, str, str],
    node: str = "",
    init: list[tuple[tuple[int, str, str], str]] | tuple[Any, ...] = (),
) -> Pod:
    def container(port: tuple[int, str, str]) -> dict[str, Any]:
        number, protocol, address = port
        return {"name": "c", "ports": [{"hostPort": number, "protocol": protocol, "hostIP": address}]}

    return a_pod(
        name,
        node=node,
        containers=[container(port) for port in ports],
        initContainers=[{**container(port), "restartPolicy": policy} for port, policy in init],
    )


@pytest.mark.parametrize(
    ("held", "wanted", "taken"),
    [
        pytest.param((80, "TCP", ""), (80, "TCP", ""), True, id="same"),
        pytest.param((80, "TCP", ""), (81, "TCP", ""), False, id="other-port"),
        pytest.param((80, "TCP", ""), (80, "UDP", ""), False, id="other-protocol"),
        pytest.param((80, "TCP", ""), (80, "", ""), True, id="tcp-is-the-default"),
        pytest.param((80, "TCP", "10.0.0.1"), (80, "TCP", "10.0.0.1"), True, id="same-address"),
        pytest.param((80, "TCP", "10.0.0.1"), (80, "TCP", "10.0.0.2"), False, id="other-address"),
        pytest.param((80, "TCP", "0.0.0.0"), (80, "TCP", "10.0.0.2"), True, id="held-on-all"),
        pytest.param((80, "TCP", "10.0.0.1"), (80, "TCP", ""), True, id="wanted-on-all"),
        pytest.param((0, "TCP", ""), (80, "TCP", ""), False, id="no-host-port"),
    ],
)
def test_ports_conflict_by_protocol_number_and_address(
    held: tuple[int, str, str], wanted: tuple[int, str, str], taken: bool
) -> None:
    """An empty address is all addresses, and all addresses conflict with each."""
    snapshot = a_snapshot(a_node("n1"), a_node("n2"), pods=[with_ports("holder", held, node="n1")])

    codes = PLUGIN.filter(CycleState(), the_info(with_ports("pod", wanted)), snapshot)

    assert codes.tolist() == [int(taken), 0]


def test_sidecars_hold_ports_and_init_containers_do_not() -> None:
    """An ordinary init container is gone before the pod runs."""
    sidecar = the_info(with_ports("a", init=[((80, "TCP", ""), "Always")]))
    ordinary = the_info(with_ports("b", init=[((80, "TCP", ""), "")]))

    assert PLUGIN.pre_filter(CycleState(), sidecar, a_snapshot(a_node())) == SUCCESS
    assert PLUGIN.pre_filter(CycleState(), ordinary, a_snapshot(a_node())) == SKIP


def test_the_refusal_is_worded_as_upstream_words_it() -> None:
    """Removing the holder helps."""
    status = PLUGIN.refusal(1, CycleState(), the_info(a_pod()))

    assert status == unschedulable("node(s) didn't have free ports for the requested pod ports")


def test_ports_come_free_when_their_holder_goes() -> None:
    """The index follows pods that come, go and move with their node's row, on its own side of a fork."""
    cluster = a_cluster(
        [a_node("n1"), a_node("n2")],
        [with_ports("a", (80, "TCP", ""), node="n1"), with_ports("b", (80, "TCP", ""), node="n2")],
    )
    index = cluster.index(HostPortIndex)
    fork = cluster.fork()

    cluster.displace("uid-default-b")
    fork.remove_node("n1")

    assert index.counts.rows(("TCP", 80)) == {0: 1}
    assert fork.index(HostPortIndex).counts.rows(("TCP", 80)) == {0: 1}
    cluster.displace("uid-default-a")
    assert not len(index.counts)
    assert fork.index(HostPortIndex).counts.rows(("TCP", 80)) == {0: 1}


class TestConformance(FilterPluginConformance):
    """The laws every filter plugin obeys."""

    plugin = PLUGIN
    # As upstream, a removed pod frees its port even if another pod on the node has it.
    test_pods_added_and_removed_in_a_simulation_count_as_if_recounted = None  # type: ignore[assignment] # left out
