"""Runs kopf beside the operator's own tasks: it passes the policies to the operator."""

import asyncio
from collections.abc import Awaitable, Callable

import kopf

from plimsoll.app import kopf_handlers
from plimsoll.app.kopf_handlers import KopfLogin
from plimsoll.app.kopf_session import session_of
from plimsoll.app.operator import Operator


async def begin(
    operator: Operator, stop: asyncio.Event, end_tasks: Callable[[], Awaitable[None]]
) -> asyncio.Task[None]:
    """Start kopf and watch each of its root tasks: if one ends, kopf ends, and so does the process.

    Args:
        operator: Gets the policies.
        stop: Ends kopf when it is set.
        end_tasks: Ends the operator's own tasks, before kopf waits for tasks that are not its own.
    """
    registry = kopf.OperatorRegistry()
    login = KopfLogin(operator.session, operator.clock)
    opened: list[kopf.AiohttpSession] = []

    async def logged_in() -> kopf.AiohttpSession:
        info = await login()
        if login.task is not None:
            operator.supervision.watch("kopf's login", login.task)
        opened[:] = [session_of(info)]
        return opened[-1]

    others = asyncio.all_tasks()

    async def ended() -> None:
        await end_tasks()
        # kopf would wait five seconds for its requests that are about to be retried.
        for task in asyncio.all_tasks() - others - {asyncio.current_task()}:
            if task.get_name() != "kopf":
                task.cancel()

    kopf_handlers.register(registry, logged_in, ended, operator.policies)
    roots = await kopf.spawn_tasks(registry=registry, clusterwide=True, standalone=True, stop_flag=stop)
    for root in roots:
        operator.supervision.watch(f"kopf's {root.get_name()}", root)

    async def run() -> None:
        try:
            await kopf.run_tasks(roots, ignored=others)
        finally:
            for each in opened:  # kopf closes those that it has used
                await each.aiohttp_session.close()

    return asyncio.create_task(run(), name="kopf")
