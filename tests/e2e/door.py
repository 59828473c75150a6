"""A door to an API server that lets through what a role grants, refuses the rest, and makes trouble if asked.

Trouble comes as ``unauthorized`` (401), ``busy`` (429), ``broken`` (500), ``conflict`` (409), ``silent`` (the
connection is cut, the request is not passed on), ``deaf`` (it is cut after: the request was carried out, and
the client cannot know), ``hanging`` (nothing is passed on, no answer comes), ``migrating`` (429, by the
webhook of KubeVirt) and ``failing`` (a watch sends an error).
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import yaml
from aiohttp import web

from deploy.admission import Admission
from e2e.rbac import Asked
from roadstead.authorization.requests import asked_by

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from deploy.manifests import Obj

#: verb, group, resource
Call = tuple[str, str, str]

#: Where an account asks what it may do, and what others may.
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
OTHERS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

#: What KubeVirt says when the eviction of a pod begins the migration of its virtual machine.
MIGRATING = (
    'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request:'
    ' Eviction triggered evacuation of VMI "default/a"'
)


@dataclass(slots=True)
class Door:
    """Lets requests through as granted."""

    server: str
    permits: Callable[[Asked], bool]
    session: aiohttp.ClientSession
    url: str = ""
    used: set[Call] = field(default_factory=set)
    refused: set[Call] = field(default_factory=set)
    trouble: Callable[[Call], str] = lambda _: ""  #: "", or how a request fails
    is_open: bool = True
    reviewed: list[Asked] = field(default_factory=list)  #: what the account has asked about its rights
    others: dict[str, Callable[[Asked], bool]] = field(default_factory=dict)  #: what other users may
    passed: list[tuple[float, Call]] = field(default_factory=list)  #: what was asked, and when
    policies: Sequence[Obj] = ()  #: the cluster's admission policies, of which the door keeps count
    user: str = "system:serviceaccount:plimsoll:plimsoll"  #: who the operator is to them
    admitted: set[str] = field(
        default_factory=set
    )  #: resources whose updates a policy judged and let through
    denied: list[str] = field(default_factory=list)  #: what policies said of others
    unserved: str = ""  #: beginning of paths that the server does not have
    held: dict[Call, asyncio.Event] = field(default_factory=dict)  #: streams that stand still until set
    is_judge: bool = True  #: whether reviews are answered here, and not by the server
    _open: dict[int, web.Request] = field(default_factory=dict)

    def close(self) -> None:
        """Break every stream and answer nothing more, as a control plane does that is being replaced."""
        self.is_open = False
        self.break_streams()

    def break_streams(self) -> None:
        """Break every request that is under way, so watches begin again."""
        for request in list(self._open.values()):
            if request.transport is not None:
                request.transport.abort()

    async def pass_on(self, request: web.Request) -> web.StreamResponse:  # noqa: C901, PLR0911, PLR0912 - one answer for each kind of request
        """Judge one request; stream the server's answer."""
        if not self.is_open:
            return _status(503, "ServiceUnavailable", "the server is currently unable to handle the request")
        if self.unserved and request.path.startswith(self.unserved):
            return _status(404, "NotFound", "the server could not find the requested resource")
        if request.path == REVIEWS and self.is_judge:
            return await self._review(request)
        asked = asked_by(request.method, request.path, request.query_string)
        failing, call = "", ("", "", "")
        if asked.resource:  # discovery everybody may read
            call = (asked.verb, asked.group, asked.resource)
            taken = [call]
            if request.query.get("sendInitialEvents") == "true":  # a list, where a server streams none
                taken.append(("list", *call[1:]))
            if asked.resource == "resourceclaims/status":  # an API server of 1.36 asks for both
                taken.append((asked.verb, asked.group, "resourceclaims/binding"))
            for verb, group, resource in taken:
                if not self.permits(replace(asked, verb=verb)):
                    self.refused.add((verb, group, resource))
                    return _status(403, "Forbidden", f"cannot {verb} {resource}.{group}")
            if denial := await self._denial(request, asked):
                self.denied.append(denial)
                return _status(403, "Forbidden", denial)
            self.used.update(taken)
            self.passed.append((time.monotonic(), call))
            if request.path == OTHERS_REVIEWS:
                return await self._review(request)
            failing = self.trouble(call)
        match failing:
            case "unauthorized":
                return _status(401, "Unauthorized", "Unauthorized")
            case "busy":
                return _status(429, "TooManyRequests", "the server has received too many requests")
            case "migrating":
                return _status(429, "TooManyRequests", MIGRATING)
            case "broken":
                return _status(500, "InternalError", "etcdserver: request timed out")
            case "conflict":
                return _status(409, "Conflict", "the object has been modified; please apply your changes")
            case "failing":
                error = {"kind": "Status", "code": 500, "reason": "InternalError", "message": "no luck"}
                line = json.dumps({"type": "ERROR", "object": error}) + "\n"
                return web.Response(text=line, content_type="application/json")
            case "hanging":
                await asyncio.Event().wait()
            case "silent" if request.transport is not None:
                request.transport.abort()
                return web.Response()
        self._open[id(request)] = request
        try:
            return await self._forward(request, call, is_deaf=failing == "deaf")
        finally:
            del self._open[id(request)]

    async def _denial(self, request: web.Request, asked: Asked) -> str:
        """What an admission policy says against a write, "" when none does."""
        operation = {"create": "CREATE", "patch": "UPDATE", "update": "UPDATE"}.get(asked.verb)
        whole, slash, _ = asked.resource.partition("/")
        for policy in self.policies:
            (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
            resources = (asked.resource, f"{whole}/*" if slash else whole)
            is_meant = asked.group in rule["apiGroups"] and not {*resources}.isdisjoint(rule["resources"])
            if (
                not is_meant
                or operation not in rule["operations"]
                or not Admission(policy).concerns(self.user)
            ):
                continue
            headers = self._headers(request)
            url, old = self.server + request.path, None
            if operation == "UPDATE":
                async with self.session.get(url, headers=headers) as answer:
                    old = await answer.json()
            async with self.session.request(
                request.method, url, params={"dryRun": "All"}, data=await request.read(), headers=headers
            ) as answer:
                if answer.status not in (200, 201):
                    return ""  # the server itself refuses it
                new = await answer.json()
            if refusal := Admission(policy).refusal(new, old, user=self.user):
                name = policy["metadata"]["name"]
                return f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: {refusal}"
            self.admitted.add(asked.resource)
        return ""

    async def _review(self, request: web.Request) -> web.Response:
        """Answer what an account may do; every authenticated one may ask (system:basic-user)."""
        review = await request.json()
        given = review["spec"]["resourceAttributes"]
        resource, sub = given["resource"], given.get("subresource", "")
        asked = Asked(
            given["verb"],
            given.get("group", ""),
            f"{resource}/{sub}" if sub else resource,
            given.get("namespace", ""),
            given.get("name", ""),
        )
        self.reviewed.append(asked)
        user = review["spec"].get("user")
        permits = self.others[user] if user else self.permits
        return web.json_response({**review, "status": {"allowed": permits(asked)}}, status=201)

    def _headers(self, request: web.Request) -> dict[str, str]:
        """What the server is given; where it has policies, they judge the operator's own account."""
        names = ("Accept", "Authorization", "Content-Type")
        headers = {name: request.headers[name] for name in names if name in request.headers}
        return {**headers, "Impersonate-User": self.user} if self.policies else headers

    async def _forward(self, request: web.Request, call: Call, *, is_deaf: bool) -> web.StreamResponse:
        """Ask the server; a deaf client's answer gets lost, although what it asked has happened."""
        async with self.session.request(
            request.method,
            self.server + request.path_qs,
            data=await request.read() or None,
            headers=self._headers(request),
        ) as answer:
            if answer.status == 403 and not self.is_judge:
                self.refused.add(call)
            if is_deaf and request.transport is not None:
                await answer.read()
                request.transport.abort()
                return web.Response()
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                if call in self.held:
                    await self.held[call].wait()
                await response.write(chunk)
            return response


def _status(code: int, reason: str, message: str) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return web.json_response({**body, "reason": reason, "message": message}, status=code)


@asynccontextmanager
async def door(
    server: str, grants: set[Call] | Callable[[Asked], bool], tls: ssl.SSLContext | None = None
) -> AsyncIterator[Door]:
    """Open a door on loopback.

    Args:
        server: Behind the door.
        grants: What is let through: in all namespaces, or as a cluster's roles say.
        tls: How the server's certificate is checked, if it has one.
    """
    connector = aiohttp.TCPConnector(limit=0, ssl=tls if tls is not None else True)
    session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), connector=connector)
    if isinstance(grants, set):
        one = Door(server, lambda asked: (asked.verb, asked.group, asked.resource) in grants, session)
    else:
        one = Door(server, grants, session)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", one.pass_on)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    one.url = f"http://{host}:{port}"
    try:
        yield one
    finally:
        await runner.cleanup()
        await session.close()


def kubeconfig_for(path: Path, server: str, token: str) -> Path:
    """A kubeconfig of one server."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "door",
        "clusters": [{"name": "door", "cluster": {"server": server}}],
        "users": [{"name": "door", "user": {"token": token}}],
        "contexts": [{"name": "door", "context": {"cluster": "door", "user": "door"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return path
