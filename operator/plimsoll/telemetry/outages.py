"""Logs outages of the API server: one line for each change, then one a minute.

Each watched resource, and kopf, fails and retries independently. The log reports each problem once, with a
remedy; metrics count single failures.
"""

import asyncio
import logging
import re
from collections.abc import Callable

import structlog
from msgspec import Struct

from plimsoll.ports.observer import Observer

#: Seconds between two checks, and between two lines about a lasting state.
LOOK_S, REPEAT_S = 1.0, 60.0

#: Seconds after which a failure that did not recur is forgotten; all requests are retried sooner.
FORGOTTEN_S = 100.0

#: Maximum length of a problem in characters, and maximum number of named resources.
SHOWN, NAMED = 200, 6


class State(Struct, frozen=True):
    """A kind of outage.

    Attributes:
        over: The message at its end.
        is_whole: Whether the whole server fails, not single requests.
    """

    event: str
    remedy: str
    over: str
    is_whole: bool = False


UNANSWERED = State(
    "the API server does not answer",
    "check its address and the network; requests are repeated",
    "the API server answers again",
    is_whole=True,
)
UNAUTHENTICATED = State(
    "the API server does not accept the credentials",
    "renew the token or the kubeconfig; it is read again",
    "the API server accepts the credentials again",
    is_whole=True,
)
FORBIDDEN = State(
    "the API server forbids requests",
    "bind the roles of deploy/ to this account; requests are repeated",
    "the API server no longer forbids requests",
)
ABSENT = State(
    "the API server does not serve resources",
    "apply crds/, or what a plugin reads; they are looked for again each minute",
    "the API server serves the resources now",
)
FAILING = State(
    "requests to the API server fail",
    "requests are repeated; if this lasts, look at the API server's log",
    "requests to the API server succeed again",
)

_STATES = {0: UNANSWERED, 401: UNAUTHENTICATED, 403: FORBIDDEN, 404: ABSENT}


class _Failure(Struct):
    state: State
    problem: str
    at: float


class _Told(Struct):
    names: frozenset[str]
    since: float
    at: float


class OutageLog(Observer):
    """Logs outages.

    Args:
        now: Seconds that never go back.
    """

    def __init__(self, now: Callable[[], float], server: str) -> None:
        self._log = structlog.get_logger("plimsoll")
        self._now = now
        self._server = server
        self._trouble = asyncio.Event()
        self._failures: dict[str, _Failure] = {}
        self._told: dict[State, _Told] = {}

    def watch_failed(self, resource: str, problem: str, status: int = 0) -> None:
        """Record that a list or watch failed."""
        state = _STATES.get(status, FAILING)
        self._failures[resource] = _Failure(state, problem, self._now())
        self._trouble.set()

    def watch_heard(self, resource: str, now: float) -> None:  # noqa: ARG002 - the hook's
        """Record that the server responded."""
        self._failures.pop(resource, None)

    def watch_recovered(self, resource: str) -> None:
        """Record that a resource can be read again."""
        self._failures.pop(resource, None)

    async def run(self) -> None:
        """Check during outages, until cancelled."""
        while True:
            await self._trouble.wait()
            await asyncio.sleep(LOOK_S)
            self.look()
            if not (self._failures or self._told):
                self._trouble.clear()

    def look(self) -> None:
        """Log changes, and unchanged outages once a minute."""
        now = self._now()
        present: dict[State, dict[str, str]] = {}
        for name, failure in list(self._failures.items()):
            if now - failure.at > FORGOTTEN_S:
                self._failures.pop(name, None)
            else:
                present.setdefault(failure.state, {})[name] = failure.problem
        for state in [state for state in self._told if state not in present]:
            told = self._told.pop(state)
            self._log.info(state.over, server=self._server, after_s=round(now - told.since))
        for state, problems in present.items():
            self._tell(state, problems, now)

    def _tell(self, state: State, problems: dict[str, str], now: float) -> None:
        names = frozenset(problems)
        told = self._told.get(state)
        is_news = told is None or not (state.is_whole or names <= told.names)
        if told is not None and not is_news and now - told.at < REPEAT_S:
            return
        since = now if told is None else told.since
        self._told[state] = _Told(names if told is None else names | told.names, since, now)
        facts: dict[str, object] = {} if told is None else {"for_s": round(now - since)}
        if not state.is_whole:
            more = len(names) - NAMED
            facts["resources"] = ", ".join(sorted(names)[:NAMED]) + (f" and {more} more" if more > 0 else "")
        problem = " ".join(min(problems.values(), key=len).split())[:SHOWN]
        self._log.warning(state.event, server=self._server, problem=problem, remedy=state.remedy, **facts)


# -- kopf's requests ---------------------------------------------------------------------------------

_ATTEMPT = re.compile(r"Request attempt #\S+ failed; .*?: \S+ (?P<url>\S+)(?: -> (?P<error>.*))?$", re.DOTALL)
#: The error of requests that are under way when kopf logs in again; they are repeated.
CLOSED = "Connector is closed"

#: kopf's message about one of its tasks that has ended and must not.
_ENDED = re.compile(r"^\S.* has (failed: |finished unexpectedly)")

_CANCELLED = re.compile(r"Activity \S+ is cancelled")
_UNRESOLVED = re.compile(r"any_name='([^']+)'")
_ERRORS = (
    ("APIUnauthorizedError", 401),
    ("APIForbiddenError", 403),
    ("APINotFoundError", 404),
    ("NotServed", 404),
    ("APIServerError", 500),
    ("APITooManyRequestsError", 429),
)


class KopfLines(logging.Filter):
    """Forwards kopf's log lines about its requests to the outage log; other lines pass.

    Args:
        failed: Called when a task of kopf has ended that must not; kopf may not notice.
    """

    def __init__(self, outages: OutageLog, failed: Callable[[str], object]) -> None:
        super().__init__()
        self._outages = outages
        self._failed = failed

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is logged."""
        if not record.name.startswith("kopf"):
            return True
        message = record.getMessage()
        if found := _ATTEMPT.match(message):
            if found["error"] and CLOSED not in found["error"]:
                status = next((code for name, code in _ERRORS if name in found["error"]), 0)
                resource = found["url"].partition("?")[0].rpartition("/")[2]
                self._outages.watch_failed(f"{resource} (kopf)", found["error"], status)
            return False
        if _CANCELLED.match(message):
            return False
        if message.startswith("Unresolved resources"):
            for resource in _UNRESOLVED.findall(message):
                self._outages.watch_failed(resource, "not installed", 404)
            return False
        if _ENDED.search(message):
            self._failed(message.partition("\n")[0])
            return False  # the process ends with this message
        return True
