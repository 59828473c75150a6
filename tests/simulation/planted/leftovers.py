"""Slips that leave something behind: memory, tasks, entries of queues."""

from __future__ import annotations

import asyncio
from typing import Any

from plimsoll.app.operator import Operator
from simulation.planted.surgery import replaced


def leaves_a_task_behind(operator: Operator) -> None:
    """Each policy that is read begins a task, and none ends."""
    tasks: list[asyncio.Task[Any]] = []

    def made(take: Any) -> Any:
        async def take_and_wait(document: Any) -> Any:
            tasks.append(asyncio.create_task(asyncio.Event().wait(), name="left behind"))
            return await take(document)

        return take_and_wait

    replaced(operator.policies, "set", made)


def looks_ready_with_a_dead_task(operator: Operator) -> None:
    """The status of policies is written once; that the task has ended is not noticed."""
    supervision = operator.supervision

    def watched(watch: Any) -> Any:
        def watch_others(name: str, task: Any) -> Any:
            return task if name == "events" else watch(name, task)

        return watch_others

    replaced(supervision, "watch", watched)

    async def runs_once() -> None:
        return

    replaced(operator.parts.recorder, "run", lambda _: runs_once)


def queues_pods_that_are_gone(operator: Operator) -> None:
    """A pod that waits and is deleted stays in the queue."""
    replaced(operator.queue, "remove", lambda _: lambda uid: None)


def remembers_explanations(operator: Operator) -> None:
    """What was said of a pod is remembered when the pod is gone."""
    replaced(operator.wing.explanations, "forget", lambda _: lambda uid: None)
