"""Plugins that write down what they are asked, and answer as their arguments say."""

from typing import Any, ClassVar

from pydantic import Field

from plimsoll.framework import SKIP, SUCCESS, Code, NodeFilter, PermitResult, PluginArgs, Status
from plimsoll.framework.binding_ports import BinderPort, WaitingPodsPort


class ProbeArgs(PluginArgs):
    """What to answer at each point; SUCCESS where nothing is said."""

    answers: dict[str, Any] = Field(default_factory=dict)
    log: list[str] = Field(default_factory=list)
    timeout: float = 10.0


class Probe:
    """Implements every point after the decision; logs ``point:plugin``."""

    name: ClassVar = "First"
    args_model: ClassVar = ProbeArgs

    def __init__(self, args: Any) -> None:
        self.args = args
        self.log = args.log

    def _asked(self, point: str) -> Any:
        self.log.append(f"{point}:{self.name}")
        answer = self.args.answers.get(point, SUCCESS)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def reserve(self, state: Any, pod: Any, node: str) -> Any:
        return self._asked("reserve")

    def unreserve(self, state: Any, pod: Any, node: str) -> None:
        self._asked("unreserve")

    def permit(self, state: Any, pod: Any, node: str) -> str | PermitResult:
        answer = self._asked("permit")
        return PermitResult(answer, self.args.timeout) if isinstance(answer, Status) else answer

    def pre_bind_preflight(self, state: Any, pod: Any, node: str) -> Any:
        return self._asked("preflight")

    async def pre_bind(self, state: Any, pod: Any, node: str) -> Any:
        return self._asked("preBind")

    async def bind(self, state: Any, pod: Any, node: str) -> Any:
        status = self._asked("bind")
        return await state.read(BinderPort).binder.bind(pod, node) if status is SUCCESS else status

    def post_bind(self, state: Any, pod: Any, node: str) -> None:
        self._asked("postBind")


class Second(Probe):
    name: ClassVar = "Second"


class GangArgs(PluginArgs):
    """How many pods make a gang."""

    size: int = 2


class Gang:
    """Pods with a ``gang`` label go together, when ``size`` of them have a node."""

    name: ClassVar = "Gang"

    args_model: ClassVar = GangArgs

    def __init__(self, args: Any) -> None:
        self.args = args

    def permit(self, state: Any, pod: Any, node: str) -> PermitResult:
        gang = pod.labels.get("gang")
        if not gang:
            return PermitResult()
        here = [each for each in state.read(WaitingPodsPort).pods if each.pod.labels.get("gang") == gang]
        if len(here) + 1 < self.args.size:
            return PermitResult(Status(Code.WAIT), 60)
        for each in here:
            each.allow(self.name)
        return PermitResult()


class Hesitates(NodeFilter):
    """Holds no pod back from any node, but gates those that say so, by raising."""

    name: ClassVar = "Hesitates"

    def pre_enqueue(self, pod: Any) -> Status:
        if pod.labels.get("break"):
            raise RuntimeError("as asked")
        return SUCCESS

    def filter_node(self, state: Any, pod: Any, node: Any) -> Status:
        return SUCCESS


__all__ = ["SKIP", "Gang", "Hesitates", "Probe", "ProbeArgs", "Second"]
