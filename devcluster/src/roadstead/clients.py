"""Connects synchronous tests to a running cluster: apply, read, wait, kubectl."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from roadstead.faults import EXEMPT, FaultInjection
from roadstead.served_resources import JsonObject, ServedResource, served_resource

#: Arguments of ``apply``: YAML files, or objects.
Source = str | Path | Mapping[str, Any]

#: Maximum seconds until the resources of a definition are served.
ESTABLISH_S = 10.0

#: Maximum seconds until the objects created by ``apply`` are deleted from an external cluster.
DELETION_S = 60.0

#: Seconds between two reads of an awaited object.
PACE_S = 0.02

_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_APPLY = {"Content-Type": "application/apply-patch+yaml"}


class ApiError(Exception):
    """A request was rejected by the API server.

    Attributes:
        code: the HTTP status.
        reason: the Status's reason, such as "NotFound".
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason


class KubectlError(subprocess.CalledProcessError):
    """kubectl failed; the message has what it wrote to standard error."""

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.stderr}"


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """A running cluster.

    A ``reference`` is written as for kubectl: ``"deploy/web"``, ``"widgets.example.com/one"``.

    Attributes:
        kubeconfig: its kubeconfig file.
        simulated: whether it is roadstead with simulated nodes, not an external cluster.
    """

    kubeconfig: Path
    simulated: bool = True
    _created: list[str] = field(default_factory=list, repr=False)

    # -- addresses -------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The URL of the current context."""
        server: str = self._cluster()["server"]
        return server

    @property
    def plain_url(self) -> str:
        """The URL without TLS; only for roadstead."""
        server: str = self._cluster("-http")["server"]
        return server

    @property
    def token(self) -> str:
        """The bearer token of the current context's user; "" without one."""
        token: str = self._user().get("token", "")
        return token

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a program that finds the cluster by ``KUBECONFIG``."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl and return its output.

        Raises:
            KubectlError: it fails; the message has its standard error.
        """
        command = ["kubectl", *arguments]
        done = subprocess.run(  # noqa: S603 - the caller's own command
            command, env=self.environment, input=stdin, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise KubectlError(done.returncode, command, done.stdout, done.stderr)
        return done.stdout

    @property
    def faults(self) -> FaultInjection:
        """What breaks the API on purpose; only for roadstead."""
        return FaultInjection(
            lambda path, body: self.request("POST", path, body), lambda: _answers(self.plain_url)
        )

    # -- objects ---------------------------------------------------------------------------------------------

    def apply(self, *sources: Source, namespace: str = "default") -> list[JsonObject]:
        """Apply objects with server-side apply, and wait until the kinds that they define are served.

        Args:
            sources: YAML files, or objects.
            namespace: the namespace of objects that name none.

        Raises:
            ApiError: one is rejected.
        """
        applied = []
        for obj in _objects(sources):
            resource = self._resource_of(obj)
            path = resource.path(obj["metadata"].get("namespace") or namespace, obj["metadata"]["name"])
            status, answer = self._send(
                "PATCH", f"{path}?fieldManager=roadstead&force=true", obj, headers=_APPLY
            )
            if status == 201:
                self._created.append(path)
            applied.append(answer)
            if obj["kind"] == "CustomResourceDefinition":
                self._until_served(obj)
        return applied

    def get(self, reference: str, namespace: str = "default") -> JsonObject:
        """Read an object.

        Raises:
            ApiError: 404, or another error.
        """
        resource, name = self._found(reference)
        return self.request("GET", resource.path(namespace, name))

    def list(self, resource: str, namespace: str = "", *, labels: str = "") -> list[JsonObject]:
        """List the objects of a resource, in one namespace or in all.

        Args:
            resource: its name, as for kubectl.
            namespace: "" for all.
            labels: a label selector.
        """
        query = f"?labelSelector={urllib.parse.quote(labels)}" if labels else ""
        found: list[JsonObject] = self.request("GET", self._named(resource).path(namespace) + query)["items"]
        return found

    def delete(self, reference: str, namespace: str = "default") -> None:
        """Delete an object; the deletion may take time, see ``wait_for_deletion``."""
        resource, name = self._found(reference)
        self.request("DELETE", resource.path(namespace, name))

    def wait_for(
        self,
        reference: str,
        namespace: str = "default",
        *,
        condition: str = "",
        until: Callable[[JsonObject], bool] = bool,
        timeout_s: float = 10.0,
    ) -> JsonObject:
        """Wait until an object exists and meets the conditions, and return it.

        Args:
            reference: the object.
            namespace: its namespace.
            condition: the type of a status condition that must be True.
            until: a further condition.
            timeout_s: the timeout in seconds.

        Raises:
            TimeoutError: with the object's last state.
        """
        last: object = "it is not there"
        for _ in _paced(timeout_s):
            try:
                found = self.get(reference, namespace)
            except (ApiError, LookupError) as error:
                last = error
                continue
            if (not condition or _is_true(found, condition)) and until(found):
                return found
            last = json.dumps(found.get("status", found))
        raise TimeoutError(f"{reference} is not as it should be after {timeout_s:g} s: {last}")

    def wait_for_deletion(self, reference: str, namespace: str = "default", timeout_s: float = 10.0) -> None:
        """Wait until an object no longer exists.

        Raises:
            TimeoutError: it still exists.
        """
        for _ in _paced(timeout_s):
            try:
                self.get(reference, namespace)
            except (ApiError, LookupError) as error:
                if isinstance(error, LookupError) or error.code == 404:
                    return
                raise
        raise TimeoutError(f"{reference} is still there after {timeout_s:g} s")

    def reset(self) -> None:
        """Restore roadstead's initial objects; in an external cluster, delete the objects of ``apply``.

        Raises:
            TimeoutError: an object of an external cluster still exists after ``DELETION_S``.
        """
        if self.simulated:
            self.request("POST", "/roadstead/reset")
            return
        paths = [self._created.pop() for _ in range(len(self._created))]
        for path in paths:
            with contextlib.suppress(ApiError):
                self.request("DELETE", path)
        for path in paths:
            self._until_gone(path)

    def _until_gone(self, path: str) -> None:
        for _ in _paced(DELETION_S):
            try:
                self.request("GET", path)
            except ApiError as error:
                if error.code == 404:
                    return
                raise
        raise TimeoutError(f"{path} is still there after {DELETION_S:g} s")

    # -- requests --------------------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        """Send a request and return the response.

        Raises:
            ApiError: it was rejected.
        """
        return self._send(method, path, body, headers=headers or {})[1]

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, *, headers: Mapping[str, str]
    ) -> tuple[int, JsonObject]:
        config = self._cluster("-http") if self.simulated else self._cluster()
        request = urllib.request.Request(config["server"] + path, method=method)  # noqa: S310 - from the kubeconfig
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        request.add_header(EXEMPT, "true")
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        for name, value in headers.items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=30, context=self._tls(config)) as response:  # noqa: S310 - likewise
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read().decode(errors="replace")
            status: JsonObject = {}
            with contextlib.suppress(ValueError):
                status = json.loads(text)
            raise ApiError(error.code, status.get("reason", ""), status.get("message", text)) from None

    def _tls(self, config: JsonObject) -> ssl.SSLContext | None:
        if not config["server"].startswith("https:"):
            return None
        authority = base64.b64decode(config.get("certificate-authority-data", "")).decode()
        context = ssl.create_default_context(
            cafile=config.get("certificate-authority"), cadata=authority or None
        )
        user = self._user()
        if "client-certificate" in user:
            context.load_cert_chain(user["client-certificate"], user["client-key"])
        elif "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile() as file:
                file.write(base64.b64decode(user["client-certificate-data"]))
                file.write(base64.b64decode(user["client-key-data"]))
                file.flush()
                context.load_cert_chain(file.name)
        return context

    # -- discovery -------------------------------------------------------------------------------------------

    def _served(self) -> Iterator[tuple[str, ServedResource]]:
        """All resources with their groups, in the API server's order of preference."""
        for root in ("/api", "/apis"):
            for group in self.request("GET", root, headers={"Accept": _DISCOVERY})["items"]:
                name = group.get("metadata", {}).get("name", "")
                for version in group["versions"]:
                    at = f"{root}/{name}/{version['version']}" if name else f"{root}/{version['version']}"
                    for item in version.get("resources", ()):
                        yield name, served_resource(at, item)

    def _named(self, name: str) -> ServedResource:
        wanted, _, group = name.lower().partition(".")
        for served_group, resource in self._served():
            if wanted in resource.names and group in ("", served_group):
                return resource
        raise LookupError(f"no resource is called {name}")

    def _found(self, reference: str) -> tuple[ServedResource, str]:
        resource, _, name = reference.partition("/")
        return self._named(resource), name

    def _resource_of(self, obj: JsonObject) -> ServedResource:
        version = obj["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        for _, resource in self._served():
            if (resource.root, resource.kind) == (root, obj["kind"]):
                return resource
        raise LookupError(f"no resource has objects of {obj['apiVersion']}, Kind={obj['kind']}")

    def _until_served(self, definition: JsonObject) -> None:
        spec = definition["spec"]
        for _ in _paced(ESTABLISH_S):
            with contextlib.suppress(LookupError):
                self._named(f"{spec['names']['plural']}.{spec['group']}")
                return
        raise TimeoutError(f"{definition['metadata']['name']} is not served after {ESTABLISH_S:g} s")

    # -- the kubeconfig --------------------------------------------------------------------------------------

    def _config(self) -> JsonObject:
        return _read(self.kubeconfig, self.kubeconfig.stat().st_mtime_ns)

    def _context(self, suffix: str = "") -> JsonObject:
        config = self._config()
        context: JsonObject = _entry(config["contexts"], config["current-context"] + suffix)["context"]
        return context

    def _cluster(self, suffix: str = "") -> JsonObject:
        cluster: JsonObject = _entry(self._config()["clusters"], self._context(suffix)["cluster"])["cluster"]
        return cluster

    def _user(self) -> JsonObject:
        user: JsonObject = _entry(self._config()["users"], self._context()["user"])["user"]
        return user


def _answers(url: str) -> bool:
    """Whether a server responds."""
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=5):  # noqa: S310 - from the kubeconfig
            return True
    except OSError:
        return False


@functools.lru_cache(maxsize=16)
def _read(kubeconfig: Path, _changed_ns: int) -> JsonObject:
    """The file's content; a cache keyed by modification time rereads a changed file."""
    config: JsonObject = yaml.load(kubeconfig.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return config


def _entry(entries: list[JsonObject], name: str) -> JsonObject:
    return next(one for one in entries if one["name"] == name)


def _objects(sources: Iterable[Source]) -> Iterator[JsonObject]:
    for source in sources:
        if isinstance(source, Mapping):
            yield dict(source)
            continue
        for document in yaml.load_all(Path(source).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
            if document:
                yield document


def _is_true(obj: JsonObject, condition: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)


def _paced(timeout_s: float) -> Iterator[None]:
    """Yields immediately and then every ``PACE_S`` until the timeout."""
    deadline = time.monotonic() + timeout_s
    while True:
        yield
        if time.monotonic() >= deadline:
            return
        time.sleep(PACE_S)
