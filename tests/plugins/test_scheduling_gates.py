"""SchedulingGates: gated pods wait."""

from plimsoll.framework import SUCCESS, NoArgs, unresolvable
from plimsoll.plugins.scheduling_gates import SchedulingGates
from plimsoll.testing.builders import a_pod, the_info

PLUGIN = SchedulingGates(NoArgs())


def test_a_pod_without_gates_enters_the_queue() -> None:
    """Nothing to wait for."""
    assert PLUGIN.pre_enqueue(the_info(a_pod())) == SUCCESS


def test_gates_are_named_in_the_order_of_the_spec() -> None:
    """The reason is upstream's, brackets included."""
    pod = the_info(a_pod(schedulingGates=[{"name": "b"}, {"name": "example.com/a"}]))

    assert PLUGIN.pre_enqueue(pod) == unresolvable("waiting for scheduling gates: [b example.com/a]")
