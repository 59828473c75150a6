"""Detects other resources named ``evictions`` on the server."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.web_request import Request
from aiohttp.web_response import Response

from plimsoll.kube.custom_resources import shadowing_evictions
from plimsoll.kube.session.session import connected


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Any]:
    """Start an API server that knows some paths; returns a kubeconfig."""
    runners = []

    async def start(answers: dict[str, Any]) -> Path:
        async def answer(request: Request) -> Response:
            found = answers.get(request.path)
            return web.json_response(found or {"kind": "Status", "code": 404}, status=200 if found else 404)

        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        runner = web.AppRunner(app)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        path = tmp_path / "kubeconfig"
        path.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
            "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
            f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{runner.addresses[0][1]}'}}}}]\n"
        )
        return path

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("answers", "shadow"),
    [
        pytest.param({}, "", id="no-such-group"),
        pytest.param(
            {
                "/apis/lifecycle.k8s.io": {"versions": [{"groupVersion": "lifecycle.k8s.io/v1alpha1"}]},
                "/apis/lifecycle.k8s.io/v1alpha1": {"resources": [{"name": "evictionrequests"}]},
            },
            "",
            id="a-group-without-evictions",
        ),
        pytest.param(
            {
                "/apis/lifecycle.k8s.io": {"versions": [{"groupVersion": "lifecycle.k8s.io/v1alpha1"}]},
                "/apis/lifecycle.k8s.io/v1alpha1": {
                    "resources": [{"name": "evictionrequests"}, {"name": "evictions"}]
                },
            },
            "evictions.lifecycle.k8s.io/v1alpha1",
            id="kubernetes-1.37-with-the-gate-on",
        ),
    ],
)
async def test_a_built_in_resource_of_our_plural_is_noticed(
    serve: Callable[..., Any], answers: dict[str, Any], shadow: str
) -> None:
    """Kubectl would take it without a word, so we say it."""
    kubeconfig = await serve(answers)

    async with connected(kubeconfig) as session:
        assert await shadowing_evictions(session) == shadow
