"""/readyz and /healthz: what kubelets and people read."""

import aiohttp
from prometheus_client import CollectorRegistry

from plimsoll.app.serving import serving


async def test_probes_say_what_is_wrong_and_who_leads():
    """Status for the kubelet, sentences for people."""
    problems = {"unready": "", "broken": ""}
    async with (
        serving(
            "127.0.0.1",
            0,
            CollectorRegistry(),
            unready=lambda: problems["unready"],
            broken=lambda: problems["broken"],
            standing=lambda: "standing by for somebody",
        ) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http,
    ):

        async def ask(path):
            async with http.get(path) as answer:
                return answer.status, await answer.text()

        assert await ask("/readyz") == (200, "ok\nstanding by for somebody\n")
        assert await ask("/healthz") == (200, "ok\n")
        problems.update(unready="waiting for the first list of pods", broken="the loop hangs")

        assert await ask("/readyz") == (
            503,
            "waiting for the first list of pods\nstanding by for somebody\n",
        )
        assert await ask("/healthz") == (503, "the loop hangs\n")
