"""Holds webhooks to what kube-apiserver 1.36.2 has answered to the same questions.

``ROADSTEAD_ASK=https://127.0.0.1:6443 ROADSTEAD_ASK_TOKEN=… pytest FILE`` asks a server instead, and writes
its answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import conversion_cases
import webhook_cases
from asked_server import Asker, answering
from roadstead.certificates import loopback_identity
from roadstead.cluster import DevCluster

CASES = [*webhook_cases.CASES, *conversion_cases.CASES]
ANSWERS = Path(__file__).parent / "webhook_answers.json"
ASKED = os.environ.get("ROADSTEAD_ASK", "")
#: Seconds until kube-apiserver acts by a new configuration.
SETTLE_S = 3.0


@contextlib.asynccontextmanager
async def a_session() -> AsyncIterator[aiohttp.ClientSession]:
    """A session of the server that is asked."""
    if not ASKED:
        async with (
            DevCluster(port=None, kubelets=None, controllers=False, authorization="RBAC") as cluster,
            cluster.session() as session,
        ):
            yield session
        return
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {os.environ['ROADSTEAD_ASK_TOKEN']}"}
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(ASKED, headers=headers, connector=connector) as session:
        yield session


async def told() -> dict[str, Any]:
    """What the server answers to all cases."""
    async with a_session() as session, answering(loopback_identity()) as hooks:
        asker = Asker(session, hooks, SETTLE_S if ASKED else 0.0)
        await asker.made("", "/api/v1/nodes", {"metadata": {"name": "n"}})
        for number, case in enumerate(CASES):
            await asker.prepare(number, case)
        await asyncio.sleep(asker.settle_s)
        try:
            return {case.name: await asker.ask(number, case) for number, case in enumerate(CASES)}
        finally:
            await asker.clean()


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """The answers of the server, by case."""
    found = asyncio.run(told())
    if ASKED:
        lines = (f"{json.dumps(name)}: {json.dumps(one, sort_keys=True)}" for name, one in found.items())
        ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return found


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_an_answer_is_that_of_kube_apiserver(answers: dict[str, Any], name: str) -> None:
    assert answers[name] == json.loads(ANSWERS.read_text())[name]
