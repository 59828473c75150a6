"""Reads credentials, and reads them again when they expire or the server refuses them.

The kubelet replaces the file with a service account's token, users rewrite kubeconfigs, and an exec plugin
returns a token with an expiry. Address and TLS settings are read once, at the start.
"""

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from kubernetes_asyncio import client, config
from msgspec import Struct

from plimsoll.kube.session.errors import Unconfigured

#: Seconds after which a file is read again, as in client-go; an exec plugin runs when its token expires.
REREAD_S = 60.0

#: A token is replaced this many seconds before it expires, or a tenth of its lifetime if that is less.
EARLY_S = 30.0

#: Seconds between two attempts to read the same credentials, and the timeout of one attempt. The former is
#: less than the interval of lease renewals, so that each refused renewal reads the credentials again.
PAUSE_S, READ_S = 1.0, 20.0

#: The lists that every kubeconfig has.
LISTS = ("clusters", "contexts")

#: Exceptions that reading credentials may raise.
UNREADABLE = (
    config.ConfigException,
    yaml.YAMLError,
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    AssertionError,
    RecursionError,  # for YAML that is nested thousands of levels deep
)


class Loaded(Struct, frozen=True):
    """Credentials as they were read.

    Attributes:
        expires: When the credentials expire, in seconds since the epoch; inf if unknown.
        is_program: Whether an exec plugin returned them; it is not run without need.
    """

    configuration: client.Configuration
    expires: float = math.inf
    is_program: bool = False

    @property
    def authorization(self) -> str:
        """The value of the Authorization header; "" without a token or password, or if that is empty."""
        value = str(self.configuration.api_key.get("BearerToken") or "").strip()
        return value if " " in value else ""


Load = Callable[[], Awaitable[Loaded]]


class Credentials:
    """The ``Authorization`` header of one connection.

    Args:
        now: Seconds since the epoch, by which an expiry is judged.
        steady: Seconds that never go back: a wall clock that is set back delays no reading.
    """

    def __init__(
        self,
        loaded: Loaded,
        load: Load,
        now: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._now = now
        self._steady = steady
        self._lock = asyncio.Lock()
        self._read_at = -math.inf
        self.problem = ""  #: why the last reading failed; "" if it succeeded
        self._take(loaded)

    async def authorization(self) -> str:
        """The value to send now; "" without a token or password."""
        if self._is_due():
            async with self._lock:
                if self._is_due():
                    await self._read()
        return self._authorization

    def _is_due(self) -> bool:
        return self._steady() >= self._due or self._now() >= self._expires

    async def refused(self, shown: str) -> bool:
        """Read again because the server refused ``shown``; returns whether the value is different now."""
        async with self._lock:
            if shown == self._authorization and self._steady() - self._read_at >= PAUSE_S:
                await self._read()
            return shown != self._authorization

    async def _read(self) -> None:
        self._read_at = self._steady()
        try:
            async with asyncio.timeout(READ_S):
                loaded = await self._load()
            if self._authorization and not loaded.authorization:
                # The server would take the next request for an anonymous one, and refuse it with another
                # status.
                raise ValueError("there is no token any more")
        except (*UNREADABLE, TimeoutError, Unconfigured) as exc:
            self.problem = str(exc) or type(exc).__name__
            self._due, self._expires = self._steady() + PAUSE_S, math.inf  # the old ones are sent meanwhile
        else:
            self._take(loaded)

    def _take(self, loaded: Loaded) -> None:
        self._read_at = self._steady()
        self.problem = ""
        self._authorization = loaded.authorization
        self._due = math.inf if loaded.is_program else self._read_at + REREAD_S
        left_s = loaded.expires - (now := self._now())
        early_s = min(EARLY_S, left_s / 10)
        self._expires = max(now + PAUSE_S, loaded.expires - early_s) if math.isfinite(left_s) else math.inf


def loader(kubeconfig: Path | None, context: str = "") -> Load:
    """A function that reads a context of a kubeconfig.

    Without either, it reads the pod's service account, else the default kubeconfig.

    The path may be several files, separated as in KUBECONFIG; "" means the current context.
    The result raises :class:`Unconfigured` when there is no usable configuration.
    """

    async def load() -> Loaded:
        settings = client.Configuration()
        settings.connection_pool_maxsize = 100
        try:
            if kubeconfig is None and not context:
                with suppress(config.ConfigException):
                    config.load_incluster_config(  # type: ignore[no-untyped-call]  # has no types
                        client_configuration=settings, try_refresh_token=False
                    )
                    return Loaded(settings)
            found = await config.load_kube_config(
                config_file=str(kubeconfig) if kubeconfig else None,
                context=check(kubeconfig, context),
                client_configuration=settings,
            )
        except UNREADABLE as exc:
            where = kubeconfig or "the pod's service account or the default kubeconfig"
            raise Unconfigured(
                f"reading {where}", message=f"no usable configuration: {' '.join(str(exc).split())}"
            ) from exc
        expiry = getattr(found, "exec_plugin_expiry", None)
        user = getattr(found, "_user", None)
        return Loaded(
            settings,
            math.inf if expiry is None else expiry.timestamp(),
            is_program=user is not None and "exec" in user,
        )

    return load


def check(kubeconfig: Path | None, context: str = "") -> str | None:
    """Validate a kubeconfig; the messages are for users, unlike the library's.

    Returns the context to use, None for the library's choice. If there are several files, the first that
    names a current context decides, as in kubectl; the library takes the last.

    Raises:
        ValueError: The file does not exist, is not a kubeconfig, or does not have the context.
    """
    if kubeconfig is None and not os.environ.get("KUBECONFIG"):
        kubeconfig = Path.home() / ".kube" / "config"
        if not kubeconfig.is_file():
            raise ValueError(
                "this is not a pod, and there is no kubeconfig; name one with --kubeconfig or KUBECONFIG"
            )
    contents = _contents(str(kubeconfig or os.environ["KUBECONFIG"]))
    known = [each["name"] for content in contents for each in content["contexts"]]
    current = next(
        (content["current-context"] for content in contents if content.get("current-context")), None
    )
    if context and context not in known:
        raise ValueError(f'context "{context}" does not exist; it has {", ".join(sorted(known)) or "none"}')
    if not known:
        raise ValueError("it has no context; add one with kubectl config set-context")
    if not (context or current):
        raise ValueError(f"it has no current-context; choose one with --context: {', '.join(sorted(known))}")
    return context or current


def contexts(kubeconfig: Path | None) -> list[str]:
    """The names of a kubeconfig's contexts; empty if it cannot be read."""
    try:
        known, _ = config.list_kube_config_contexts(config_file=str(kubeconfig) if kubeconfig else None)
    except UNREADABLE:
        return []
    return [str(each["name"]) for each in known]


def _contents(paths: str) -> list[Mapping[str, Any]]:
    """The contents of kubeconfigs; if there are several, of those that exist."""
    named = [Path(part).expanduser() for part in paths.split(os.pathsep) if part]
    files = [path for path in named if path.is_file()]
    if not files:
        raise ValueError(_unusable(named[0]) if len(named) == 1 else "none of the files exists")
    contents: list[Mapping[str, Any]] = []
    for path in files:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        if content is None and len(files) == 1:
            raise ValueError("it is empty")
        if not isinstance(content, dict) or not all(isinstance(content.get(name), list) for name in LISTS):
            raise ValueError(f"this is not a kubeconfig: it has no lists of {' and '.join(LISTS)}")
        contents.append(content)
    return contents


def _unusable(path: Path) -> str:
    """Why a path is no kubeconfig file."""
    if path.is_dir():
        return "it is a folder; name a file in it"
    if path == Path(os.devnull):
        return "it is empty"
    return "it is not a regular file" if path.exists() else "there is no such file"


def present_namespace(kubeconfig: Path | None, context: str = "") -> str:
    """The namespace of a context, by default the current one; ``default`` when it names none."""
    try:
        chosen = check(kubeconfig, context)
        known, current = config.list_kube_config_contexts(config_file=str(kubeconfig) if kubeconfig else None)
    except UNREADABLE:
        return "default"
    found = next((each for each in known if each["name"] == chosen), current)
    where: Mapping[str, Any] = (found or {}).get("context") or {}
    return str(where.get("namespace") or "default")
