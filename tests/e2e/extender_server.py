"""HTTP extenders in a process of their own: good, bad and hanging ones, as a test programs them.

``python -m e2e.extender_server [--kubeconfig FILE]`` serves HTTP and HTTPS on loopback and prints one line of
JSON: both URLs, and the certificate. A test posts ``/program/NAME`` what to do by verb, gives a policy
``URL/NAME`` as urlPrefix, and reads from ``/log/NAME`` what was asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import sys
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from aiohttp import web

from e2e.speaker import Speaker, speaking
from roadstead.certificates import loopback_identity

Obj = dict[str, Any]


class Extenders:
    """All extenders of the process."""

    def __init__(self, speaker: Speaker | None) -> None:
        self.speaker = speaker
        self.programs: dict[str, dict[str, Obj]] = {}
        self.log: defaultdict[str, list[Obj]] = defaultdict(list)
        self._changed: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def program(self, request: web.Request) -> web.Response:
        """Take over what to do."""
        name = request.match_info["name"]
        self.programs[name] = await request.json()
        self._changed.pop(name, asyncio.Event()).set()
        return web.Response()

    async def tell(self, request: web.Request) -> web.Response:
        """What was asked."""
        return web.json_response(self.log[request.match_info["name"]])

    async def ask(self, request: web.Request) -> web.StreamResponse:
        """Do as programmed."""
        name, verb = request.match_info["name"], request.match_info["verb"]
        body = await request.json()
        headers = {key.lower(): value for key, value in request.headers.items()}
        self.log[name].append({"verb": verb, "body": body, "headers": headers})
        program = self.programs.get(name, {}).get(verb)
        if program is None:
            return web.Response(status=404)
        ((kind, value),) = program.items()
        answer: web.StreamResponse = await getattr(self, f"do_{kind}")(request, body, value)
        return answer

    # -- good ones ------------------------------------------------------------------------------------

    async def do_answer(self, _: web.Request, __: Obj, value: Any) -> web.Response:
        """The same to everybody."""
        return web.json_response(value)

    async def do_only(self, _: web.Request, body: Obj, value: list[str]) -> web.Response:
        """Pass these nodes; the others get a reason."""
        if body["NodeNames"] is not None:
            names = body["NodeNames"]
            passed: Obj = {"NodeNames": [name for name in names if name in value]}
        else:
            items = body["Nodes"]["items"]
            names = [item["metadata"]["name"] for item in items]
            passed = {"Nodes": {"items": [item for item in items if item["metadata"]["name"] in value]}}
        failed = {name: "the extender says no" for name in names if name not in value}
        return web.json_response({**passed, "FailedNodes": failed})

    async def do_scores(self, _: web.Request, __: Obj, value: dict[str, int]) -> web.Response:
        """Scores by node."""
        return web.json_response([{"Host": name, "Score": score} for name, score in value.items()])

    async def do_victims_on(self, _: web.Request, body: Obj, value: list[str]) -> web.Response:
        """Keep the candidates that are among these nodes."""
        left = {
            node: {
                "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]],
                "NumPDBViolations": victims["NumPDBViolations"],
            }
            for node, victims in body["NodeNameToVictims"].items()
            if node in value
        }
        return web.json_response({"NodeNameToMetaVictims": left})

    async def do_bind(self, _: web.Request, body: Obj, __: Any) -> web.Response:
        """Bind, as an extender with credentials of its own does."""
        path = f"/api/v1/namespaces/{body['PodNamespace']}/pods/{body['PodName']}/binding"
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": body["PodName"], "uid": body["PodUID"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": body["Node"]},
        }
        assert self.speaker is not None, "to bind, name a kubeconfig"
        answer = await self.speaker.request("POST", path, binding)
        return web.json_response({"Error": "" if answer.status == 201 else str(answer.body)})

    # -- bad ones -------------------------------------------------------------------------------------

    async def do_status(self, _: web.Request, __: Obj, value: int) -> web.Response:
        """An error of HTTP."""
        return web.Response(status=value, text="it broke")

    async def do_raw(self, _: web.Request, __: Obj, value: str) -> web.Response:
        """Bytes that may mean nothing."""
        return web.Response(body=value.encode())

    async def do_redirect(self, _: web.Request, __: Obj, value: str) -> web.Response:
        """Somewhere else."""
        return web.Response(status=307, headers={"Location": value})

    async def do_hang(self, _: web.Request, __: Obj, value: float) -> web.Response:
        """Say nothing for so many seconds, then nothing of use."""
        await asyncio.sleep(value)
        return web.json_response({"NodeNames": [], "Error": "too late"})

    async def do_wait(self, request: web.Request, _: Obj, __: Any) -> web.Response:
        """Say nothing until there is another program, then nothing of use."""
        await self._changed[request.match_info["name"]].wait()
        return web.json_response({"NodeNames": [], "Error": "too late"})

    async def do_huge(self, request: web.Request, _: Obj, value: int) -> web.StreamResponse:
        """Answer with so many megabytes."""
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(value):  # type: ignore[assignment] # a fake differs on purpose
            await response.write(b" " * 2**20)
        return response

    async def do_trickle(self, request: web.Request, _: Obj, value: float) -> web.StreamResponse:
        """Answer with a byte now and then, for so many seconds."""
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(int(value * 10)):  # type: ignore[assignment] # a fake differs on purpose
            await response.write(b" ")
            await asyncio.sleep(0.1)
        return response


async def serve(kubeconfig: Path | None) -> None:
    """Serve until cancelled."""
    async with speaking(kubeconfig) if kubeconfig is not None else nullcontext() as speaker:
        extenders = Extenders(speaker)
        application = web.Application(client_max_size=2**26)
        application.router.add_post("/program/{name}", extenders.program)
        application.router.add_get("/log/{name}", extenders.tell)
        application.router.add_post("/{name}/{verb}", extenders.ask)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        identity = loopback_identity()
        contexts: tuple[ssl.SSLContext | None, ...] = (None, identity.context)
        for context in contexts:
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        http, https = (address[1] for address in runner.addresses)
        said = {
            "http": f"http://127.0.0.1:{http}",
            "https": f"https://127.0.0.1:{https}",
            "certificate": identity.certificate.decode(),
        }
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path)
    asyncio.run(serve(parser.parse_args().kubeconfig))
