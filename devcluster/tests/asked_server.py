"""Asks a server the questions of a table, with the webhooks that each needs: roadstead, or kube-apiserver.

A case has configurations of webhooks and requests. What is kept of each request is its code, what a refusal
says, its warnings, and what webhooks were asked meanwhile; uids, versions and ports are left out.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import json
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from roadstead.certificates import Identity

GROUP = "/apis/admissionregistration.k8s.io/v1"
#: Shown of what a webhook is asked about.
_SHOWN = ("operation", "subResource", "name", "namespace", "dryRun")
_RUN = f"case-{int(time.time()):x}"
_KINDS = ("kind", "requestKind", "resource", "requestResource", "options")


@dataclass
class Case:
    """Webhooks and requests.

    Attributes:
        name: what is asked.
        requests: method, path below the case's namespace or from "/apis" on, body, media type.
        mutating: webhooks without their ``clientConfig``, with "answer" in place of it.
        validating: likewise.
        also: what else of a request is shown to be asked: names of its fields.
        setup: requests before there are webhooks.
        definition: a CustomResourceDefinition whose conversion webhook has an "answer".
    """

    name: str
    requests: list[Any]
    mutating: list[Any] = field(default_factory=list)
    validating: list[Any] = field(default_factory=list)
    also: tuple[str, ...] = ()
    setup: list[Any] = field(default_factory=list)
    definition: Any = None


class HookServer:
    """Answers reviews by the "answer" of the webhook at each path."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.answers: dict[str, Any] = {}
        self.asked: dict[str, list[Any]] = {}
        self.port = 0

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Answer one review."""
        review = await request.json()
        _, case, _ = request.path.split("/", 2)
        self.asked.setdefault(case, []).append((request.path, review))
        answer = self.answers[request.path]
        if callable(answer):
            answer = answer(review["request"])
        if "sleep" in answer:
            await asyncio.sleep(answer["sleep"])
        if "http" in answer:
            return web.Response(
                status=answer["http"],
                text=answer.get("text", ""),
                content_type=answer.get("media", "text/plain"),
                headers=answer.get("headers"),
            )
        uid = review["request"]["uid"]
        if review["kind"] == "AdmissionReview":
            response = {"uid": uid, "allowed": True, **answer}
            if isinstance(response.get("patch"), list):
                response["patch"] = base64.b64encode(json.dumps(response["patch"]).encode()).decode()
                response.setdefault("patchType", "JSONPatch")
        else:
            response = {"uid": uid, "result": {"status": "Success"}, **answer}
        head = {"kind": review["kind"], "apiVersion": review["apiVersion"], **response.pop("head", {})}
        if response.pop("none", False):
            return web.json_response(head)
        return web.json_response({**head, "response": response})

    def client(self, path: str) -> Any:
        """The ``clientConfig`` of a path."""
        bundle = base64.b64encode(self.identity.certificate).decode()
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": bundle}


@contextlib.asynccontextmanager
async def answering(identity: Identity) -> AsyncIterator[HookServer]:
    """A server of webhooks."""
    found = HookServer(identity)
    runner = web.ServerRunner(web.Server(found.handle, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=identity.context).start()
    found.port = runner.addresses[0][1]
    yield found
    await runner.cleanup()


class Asker:
    """Sends the requests of cases.

    Args:
        session: of the server.
        hooks: the webhooks' server.
        settle_s: seconds until the server knows of a new configuration; 0 for roadstead.
    """

    def __init__(self, session: aiohttp.ClientSession, hooks: HookServer, settle_s: float) -> None:
        self.session, self.hooks, self.settle_s = session, hooks, settle_s

    async def send(self, space: str, method: str, path: str, body: Any = None, *rest: Any) -> Any:
        """One request: code, body, warnings."""
        media = rest[0] if rest else "application/json"
        headers = {"Content-Type": media, **(rest[1] if len(rest) > 1 else {})}
        if not path.startswith("/"):
            path = f"/api/v1/namespaces/{space}/{path}"
        path = path.replace("SPACE", space)
        data = None if body is None else json.dumps(body).replace("SPACE", space)
        async with self.session.request(method, path, data=data, headers=headers) as answer:
            text = await answer.text()
            try:
                shown = json.loads(text)
            except ValueError:
                shown = text
            return answer.status, shown, answer.headers.getall("Warning", [])

    async def prepare(self, number: int, case: Case) -> None:
        """Make the namespace and the webhooks of a case."""
        space = space_of(number)
        await self.made(space, "/api/v1/namespaces", {"metadata": {"name": space, "labels": {"case": space}}})
        if case.definition is not None:
            await self._define(space, case.definition)
        for request in case.setup:
            code, answer, _ = await self.send(space, *request)
            assert code < 300, (case.name, answer)
        for kind, given in (("mutating", case.mutating), ("validating", case.validating)):
            for index, config in enumerate(given if given and isinstance(given[0], list) else [given]):
                hooks = [self._hook(space, kind, f"{index}{at}", one) for at, one in enumerate(config)]
                name = f"{space}-{9 - index}"
                if hooks:
                    await self.made(
                        space,
                        f"{GROUP}/{kind}webhookconfigurations",
                        {"metadata": {"name": name}, "webhooks": hooks},
                    )

    async def _define(self, space: str, definition: Any) -> None:
        """Create a definition, and wait for its resource."""
        given = json.loads(
            json.dumps({k: v for k, v in definition.items() if k != "answer"}).replace("SPACE", space)
        )
        path = f"/{space}/c"
        self.hooks.answers[path] = definition["answer"]
        webhook = {"clientConfig": self.hooks.client(path), "conversionReviewVersions": ["v1"]}
        given["spec"]["conversion"] = {
            "strategy": "Webhook",
            "webhook": {**webhook, **given.pop("webhook", {})},
        }
        await self.made(space, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", given)
        version = given["spec"]["versions"][0]["name"]
        for _ in range(100):
            code, _, _ = await self.send(
                space, "GET", f"/apis/{given['spec']['group']}/{version}/turnips?limit=1"
            )
            if code == 200:
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"{space}: no resource")

    async def clean(self) -> None:
        """Delete all webhooks."""
        for kind in ("mutating", "validating"):
            await self.send("", "DELETE", f"{GROUP}/{kind}webhookconfigurations")

    async def made(self, space: str, path: str, body: Any) -> None:
        """Create an object."""
        code, answer, _ = await self.send(space, "POST", path, body)
        assert code in {201, 409}, answer

    def _hook(self, space: str, kind: str, at: str, given: Any) -> Any:
        path = f"/{space}/{kind[0]}{at}"
        self.hooks.answers[path] = given.get("answer", {})
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
        plain = {
            "name": f"{kind[0]}{at}.example.com",
            "clientConfig": self.hooks.client(path),
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "namespaceSelector": {"matchLabels": {"case": space}},
        }
        more = {key: value for key, value in given.items() if key != "answer"}
        return json.loads(json.dumps({**plain, **more}).replace("SPACE", space))

    async def ask(self, number: int, case: Case) -> list[Any]:
        """What the server answers to each request of a case."""
        space, told = space_of(number), []
        for request in case.requests:
            self.hooks.asked[space] = []
            if request[0] == "SLEEP":
                await asyncio.sleep(request[1] if self.settle_s else 0)
                continue
            code, answer, warnings = await self.send(space, *request)
            asked = _ordered([self._shown(path, one, case.also) for path, one in self.hooks.asked[space]])
            if case.definition is not None:  # kube-apiserver fills its cache as well, and asks when it does
                texts = {
                    json.dumps(one, sort_keys=True) for one in asked if "hook" in one or "asked" in case.also
                }
                asked = [json.loads(one) for one in sorted(texts)]
            told.append(self._plain(kept_of(request, code, answer, warnings, asked), space))
        return told

    def _shown(self, path: str, review: Any, also: tuple[str, ...]) -> Any:
        request = review["request"]
        found: dict[str, Any] = {"hook": path.rpartition("/")[2]}
        found |= {key: request[key] for key in _SHOWN if key in request and request[key] is not False}
        for key in _KINDS:
            if key in also:
                found[key] = request.get(key)
        found["kind"] = (request.get("kind") or {}).get("kind")
        for key in also:
            if key not in _KINDS and key != "asked":
                value: Any = request
                for step in key.split("."):
                    value = value.get(step) if isinstance(value, dict) else None
                found[key] = value
        if "desiredAPIVersion" in request:
            found = {"to": request["desiredAPIVersion"], "review": review["apiVersion"]}
            found["objects"] = [_plain_object(one) for one in request["objects"]]
        return found

    def _plain(self, told: Any, space: str) -> Any:
        text = json.dumps(told)
        text = text.replace(f"127.0.0.1:{self.hooks.port}", "HOST").replace(space, "SPACE")
        text = re.sub(r"gen-[a-z0-9]{5}", "gen-SUFFIX", text)
        text = re.sub(r"record \(\d+\)", "record (VERSION)", text)
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
        return json.loads(text)


def _ordered(asked: list[Any]) -> list[Any]:
    """The same with validating webhooks, which are asked at a time, sorted within one question."""
    found: list[Any] = []
    # kube-apiserver asks again where its cache was behind, and about the deletion of a pod up to three times.
    asked = [one for at, one in enumerate(asked) if not at or one != asked[at - 1]]
    for _, group in itertools.groupby(
        asked, lambda one: one.get("hook", "")[:1] == "v" and one.get("name", "")
    ):
        same = list(group)
        found += sorted(same, key=lambda one: one["hook"]) if same[0].get("hook", "")[:1] == "v" else same
    return found


def _plain_object(obj: Any) -> Any:
    """An object that is sent to be converted: the names of its metadata's fields, and the rest."""
    return {**obj, "metadata": sorted(key for key in obj["metadata"] if key != "managedFields")}


def _line(text: str) -> Any:
    """What is kept of a line of a watch."""
    event = json.loads(text)
    obj = event["object"]
    if event["type"] == "ERROR":
        return ["ERROR", obj.get("code"), obj.get("message")]
    return [event["type"], obj["apiVersion"], obj["metadata"].get("name"), obj.get("spec")]


def space_of(number: int) -> str:
    """The namespace of a case; another one each time that a real server is asked."""
    return f"{_RUN}-{number:03}"


def kept_of(request: Any, code: int, answer: Any, warnings: list[str], asked: list[Any]) -> Any:
    """What is kept of an answer."""
    told: dict[str, Any] = {"code": code}
    if isinstance(answer, dict) and answer.get("kind") == "Status" and answer.get("status") == "Failure":
        told |= {key: answer[key] for key in ("message", "reason", "details") if key in answer}
        _, found, why = told["message"].partition("storage is (re)initializing: failed to list ")
        is_fault = found or "conversion webhook" in told["message"] or "'Kind' is missing" in told["message"]
        if is_fault and request[0] == "GET" and request[1].partition("?")[0].endswith("turnips"):
            # kube-apiserver reads past a cache that is young, and has 500 then; seconds depend on its age.
            told = {"code": "429 or 500", "message": why.partition(": ")[2] or told["message"]}
    elif isinstance(answer, dict):
        shown = {key: answer[key] for key in ("data", "spec", "status") if key in answer}
        meta = answer.get("metadata") or {}
        shown |= {key: meta[key] for key in ("labels", "annotations") if meta.get(key)}
        if request[0] != "DELETE" and answer.get("kind") in ("ConfigMap", "Turnip"):
            told["shown"] = {"apiVersion": answer["apiVersion"], **shown}
        if request[0] == "GET" and answer.get("kind") == "Scale":
            told["shown"] = {key: answer.get(key) for key in ("spec", "status")}
        if "items" in answer:
            told["items"] = [
                [one.get("apiVersion"), one["metadata"]["name"], one.get("spec")] for one in answer["items"]
            ]
    elif "watch=" in request[1]:
        told["lines"] = [_line(one) for one in str(answer).splitlines()]
    else:
        told["text"] = answer
    if warnings:
        told["warnings"] = warnings
    if asked:
        told["asked"] = asked
    return told
