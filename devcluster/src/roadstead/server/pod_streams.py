"""Serves ``log`` and ``exec`` of pods: they say what their annotations say.

==================  ================================================================================
``logs``            the log of each container; ``logs.NAME`` that of one container
``exec``            what each command writes; or a JSON object from command lines (``*`` for any
                    other) to texts, or to objects with ``stdout``, ``stderr`` and ``code``
==================  ================================================================================

The names follow ``roadstead.test/``. A log that is followed goes on while its annotation grows, and ends with
its pod. Commands are executed over WebSockets (``v5.channel.k8s.io``, ``v4.channel.k8s.io``), as by kubectl
and the Python clients; not over SPDY. Input is read and ignored.

Source: Kubernetes v1.36 ``pkg/registry/core/pod/strategy.go`` (LogLocation), apimachinery
``util/remotecommand``.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from aiohttp import WSMsgType, web

from roadstead.controllers.pod_state import is_finished
from roadstead.values.status_errors import StatusError, bad_request

if TYPE_CHECKING:
    from roadstead.store.api import Api
    from roadstead.store.store import Change
    from roadstead.values.resources import Obj

PREFIX = "roadstead.test/"
_PATH = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)/(log|exec)")
_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _STATUS = range(4)
_NOT_FOUND = 127


async def streamed(api: Api, request: web.BaseRequest, options: Obj) -> web.StreamResponse | None:
    """The log of a pod, or the session of a command, with its PodExecOptions; None if the path is neither.

    Raises:
        StatusError: 404 without the pod, 400 for a container that does not exist or does not run.
    """
    found = _PATH.fullmatch(request.path)
    if found is None:
        return None
    resource = api.resource("pods")
    namespace, name = unquote(found[1]), unquote(found[2])
    pod = api.entry(resource, namespace, name).obj
    if found[3] == "log":
        return await _log(api, request, pod)
    return await _exec(request, pod, options)


def _container(pod: Obj, wanted: str) -> str:
    """The name of a container, the only one if none is named.

    Raises:
        StatusError: 400.
    """
    kinds = ("containers", "initContainers", "ephemeralContainers")
    names = [one["name"] for kind in kinds for one in pod["spec"].get(kind) or ()]
    name = pod["metadata"]["name"]
    default = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container", "")
    if wanted and wanted not in names:
        raise bad_request(f"container {wanted} is not valid for pod {name}")
    if not wanted and len(pod["spec"]["containers"]) > 1 and default not in names:
        raise bad_request(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]"
        )
    return wanted or default or str(names[0])


def _told(pod: Obj, name: str) -> str:
    text: str = (pod["metadata"].get("annotations") or {}).get(PREFIX + name, "")
    return text


def _check_started(pod: Obj, container: str) -> None:
    """Raise 400 for a container that waits for its start."""
    for kind in ("containerStatuses", "initContainerStatuses"):
        for status in (pod.get("status") or {}).get(kind) or ():
            state = status.get("state") or {}
            if status["name"] == container and "waiting" in state and not status.get("restartCount"):
                name, reason = pod["metadata"]["name"], state["waiting"].get("reason", "")
                raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {reason}')


# -- logs ----------------------------------------------------------------------------------------------------


def _text(pod: Obj, container: str) -> str:
    text = _told(pod, f"logs.{container}") or _told(pod, "logs")
    return text if not text or text.endswith("\n") else f"{text}\n"


async def _log(api: Api, request: web.BaseRequest, pod: Obj) -> web.StreamResponse:
    container = _container(pod, request.query.get("container", ""))
    _check_started(pod, container)
    if not pod["spec"].get("nodeName"):
        return web.Response(status=204)
    sent = _text(pod, container)
    lines = sent.splitlines(keepends=True)
    if (tail := request.query.get("tailLines")) is not None:
        lines = lines[len(lines) - int(tail) :] if int(tail) else []
    if request.query.get("timestamps") == "true":
        since = (pod.get("status") or {}).get("startTime") or pod["metadata"]["creationTimestamp"]
        lines = [f"{since} {line}" for line in lines]
    text = "".join(lines).encode()
    if (limit := request.query.get("limitBytes")) is not None:
        text = text[: int(limit)]
    if request.query.get("follow") != "true":
        return web.Response(body=text, content_type="text/plain")
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    await response.prepare(request)
    await response.write(text)
    await _follow(api, response, pod, container, sent)
    await response.write_eof()
    return response


async def _follow(api: Api, response: web.StreamResponse, pod: Obj, container: str, sent: str) -> None:
    """Write what the log gains, until the pod ends or is deleted."""
    states: asyncio.Queue[tuple[str, Obj]] = asyncio.Queue()
    uid = pod["metadata"]["uid"]

    def changed(change: Change) -> None:
        if change.entry.obj["metadata"]["uid"] == uid:
            states.put_nowait((change.type, change.entry.obj))

    collection = api.store.collection("pods")
    collection.subscribers.append(changed)
    try:
        current = api.find("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
        kind = "MODIFIED"
        while current is not None and current["metadata"]["uid"] == uid:
            text = _text(current, container)
            if text.startswith(sent) and len(text) > len(sent):
                await response.write(text[len(sent) :].encode())
            sent = text
            if kind == "DELETED" or is_finished(current):
                return
            kind, current = await states.get()
    finally:
        collection.subscribers.remove(changed)


# -- commands ------------------------------------------------------------------------------------------------


def _result(pod: Obj, command: str) -> Obj:
    """What a command writes, and its exit code."""
    text = _told(pod, "exec")
    told: Any = {"*": text} if text else {}
    if text.startswith("{"):
        try:
            told = json.loads(text)
        except ValueError as error:
            return {"stderr": f"roadstead: annotation {PREFIX}exec: {error}\n", "code": _NOT_FOUND}
    result = told.get(command, told.get("*"))
    if result is None:
        message = f"roadstead: {command}: not found; say what it writes in the annotation {PREFIX}exec\n"
        return {"stderr": message, "code": _NOT_FOUND}
    return {"stdout": result} if isinstance(result, str) else dict(result)


async def _exec(request: web.BaseRequest, pod: Obj, options: Obj) -> web.StreamResponse:
    container = _container(pod, options.get("container", ""))
    name = pod["metadata"]["name"]
    if not pod["spec"].get("nodeName"):
        raise bad_request(f"pod {name} does not have a host assigned")
    if is_finished(pod):
        message = "cannot exec into a container in a completed pod; current phase is "
        raise bad_request(message + pod["status"]["phase"])
    _check_started(pod, container)
    command = " ".join(options.get("command") or [])
    if not command:
        raise bad_request("you must specify at least 1 command for the container")
    if request.headers.get("Upgrade", "").lower() != "websocket":
        raise StatusError(400, "BadRequest", "Upgrade request required: roadstead executes over WebSockets")
    socket = web.WebSocketResponse(protocols=_PROTOCOLS)
    await socket.prepare(request)
    result = _result(pod, command)
    if options.get("stdin"):
        await _read_input(socket)
    for channel, stream in ((_STDOUT, "stdout"), (_STDERR, "stderr")):
        if result.get(stream):
            await socket.send_bytes(bytes((channel,)) + result[stream].encode())
    await socket.send_bytes(bytes((_STATUS,)) + json.dumps(_status(result.get("code", 0))).encode())
    await socket.close()
    return socket


async def _read_input(socket: web.WebSocketResponse) -> None:
    """Read the input to its end, which the newer protocol marks; the older one sends none."""
    while socket.ws_protocol == _PROTOCOLS[0]:
        message = await socket.receive()
        if message.type is not WSMsgType.BINARY or message.data[:2] == b"\xff\x00":
            return


def _status(code: int) -> Obj:
    if not code:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
