"""NodeDeclaredFeatures: pods go where the kubelet can do what they need."""

from typing import Any

import pytest

from plimsoll.framework import SKIP, SUCCESS, CycleState, NoArgs, unresolvable
from plimsoll.framework.status import Status
from plimsoll.plugins.node_declared_features import NodeDeclaredFeatures
from plimsoll.testing.builders import a_node, a_pod, a_snapshot, the_info
from plimsoll.testing.conformance import FilterPluginConformance

PLUGIN = NodeDeclaredFeatures(NoArgs())
RESTARTS_ALL = {"containers": [{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]}
OTHER_RULE = {"containers": [{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}]}
OWN_USERS = {"hostNetwork": True, "hostUsers": False}


@pytest.mark.parametrize(
    ("spec", "answer", "codes"),
    [
        pytest.param({}, SKIP, [0, 0, 0], id="nothing-needed"),
        pytest.param(OTHER_RULE, SKIP, [0, 0, 0], id="other-rule"),
        pytest.param({"hostNetwork": True}, SKIP, [0, 0, 0], id="host-users"),
        pytest.param(RESTARTS_ALL, SUCCESS, [0, 1, 1], id="restarts-all-containers"),
        pytest.param(OWN_USERS, SUCCESS, [0, 0, 1], id="own-users-on-the-host-network"),
        pytest.param(RESTARTS_ALL | OWN_USERS, SUCCESS, [0, 1, 1], id="both"),
    ],
)
def test_what_the_spec_needs_must_be_declared(spec: dict[str, Any], answer: Status, codes: list[int]) -> None:
    """Two features follow from a spec; all that follow have to be there."""
    both = ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"]
    nodes = [a_node(f"n{n}", status={"declaredFeatures": both[n:]}) for n in range(3)]
    pod = the_info(a_pod(**spec))

    assert PLUGIN.pre_filter(CycleState(), pod, a_snapshot(*nodes)) == answer
    assert PLUGIN.filter(CycleState(), pod, a_snapshot(*nodes)).tolist() == codes
    assert PLUGIN.refusal(1, CycleState(), pod) == unresolvable(
        "node(s) didn't match Pod's required features"
    )


class TestConformance(FilterPluginConformance):
    """The laws every filter plugin obeys."""

    plugin = PLUGIN
    pods = ({}, OWN_USERS)
    nodes = ({}, {"status": {"declaredFeatures": ["UserNamespacesHostNetworkSupport"]}})
