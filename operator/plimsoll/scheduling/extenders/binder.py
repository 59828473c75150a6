"""Lets an extender bind the pods that concern it: the first Bind plugin of a profile with extenders."""

from collections.abc import Awaitable, Callable
from typing import ClassVar

from plimsoll.engine.extenders.asks import BindAsk, Failure
from plimsoll.engine.extenders.extender import EXTENDER, Extender, interested
from plimsoll.framework import SKIP, SUCCESS, BindPlugin, CycleState, NoArgs, PodInfo, Status, error

Send = Callable[[str, BindAsk], Awaitable[Failure | None]]
"""Has a pod of a scheduler name bound; None when it is."""


class ExtenderBinder(BindPlugin):
    """The first bind plugin of a profile with extenders: lets the one with bindVerb bind its pods.

    Source: kube-scheduler v1.36, ``schedule_one.go`` (extendersBinding).
    """

    name: ClassVar = EXTENDER
    args_model: ClassVar = NoArgs

    def __init__(self, send: Send, scheduler: str, extenders: tuple[Extender, ...]) -> None:
        self._send = send
        self._scheduler = scheduler
        self._extenders = extenders

    async def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:  # noqa: ARG002 - the port's
        """SKIP when no extender binds the pod, or one that may be ignored failed to."""
        for extender in interested(self._extenders, pod):
            if not extender.bind_verb:
                continue
            failure = await self._send(self._scheduler, BindAsk(extender, pod, node))
            if failure is None:
                return SUCCESS
            if not extender.ignorable:
                return error(failure.message)
        return SKIP
