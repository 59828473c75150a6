"""The HTTP endpoints for Prometheus and probes: /metrics, /readyz, /healthz."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest


@asynccontextmanager
async def serving(
    address: str,
    port: int,
    registry: CollectorRegistry,
    *,
    unready: Callable[[], str],
    broken: Callable[[], str],
    standing: Callable[[], str],
) -> AsyncIterator[int]:
    """Serve until left; yields the port.

    Args:
        address: To listen on.
        port: 0 takes a free one.
        registry: What /metrics shows.
        unready: Why the operator is not ready yet, "" when it is.
        broken: Why it should be restarted, "" when it should not.
        standing: Whether it leads, in words; a line of /readyz.
    """
    # A switch of the whole process; nobody else serves metrics in it. The series double every counter and
    # histogram, and no rule or dashboard reads them.
    disable_created_metrics()  # type: ignore[no-untyped-call]

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    def answer(problem: str, *more: str) -> web.Response:
        return web.Response(text="\n".join((problem or "ok", *more, "")), status=503 if problem else 200)

    async def readyz(_: web.Request) -> web.Response:
        return answer(unready(), standing())

    async def healthz(_: web.Request) -> web.Response:
        return answer(broken())

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/healthz", healthz)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, address, port)
    await site.start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
