"""DefaultBinder: binds through the port it finds in the cycle state."""

from typing import Any

import pytest

from plimsoll.framework import SUCCESS, CycleState, NoArgs, error
from plimsoll.framework.binding_ports import BinderPort
from plimsoll.framework.status import Status
from plimsoll.plugins.default_binder import DefaultBinder
from plimsoll.testing.builders import a_pod, the_info


class FakeBinder:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.bound: list[Any] = []

    async def bind(self, pod: Any, node: str) -> Any:
        self.bound.append((pod.key, node))
        return self.answer


@pytest.mark.parametrize("answer", [SUCCESS, error("conflict")], ids=["bound", "refused"])
async def test_the_binders_answer_is_the_status(answer: Status) -> None:
    """One write, not retried; what the API server says goes back to the framework."""
    binder = FakeBinder(answer)
    state = CycleState()
    state.write(BinderPort(binder))

    status = await DefaultBinder(NoArgs()).bind(state, the_info(a_pod("web")), "n1")

    assert status == answer
    assert binder.bound == [("default/web", "n1")]
