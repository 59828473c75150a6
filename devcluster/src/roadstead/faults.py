"""Breaks the API on purpose, in a line of a test: ``with roadstead.faults.refuse("PATCH", "pods/status"):``.

Faults concern the requests of the program under test, and of kubectl; the requests of ``RunningCluster``
itself always succeed.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

#: The header of requests that no fault concerns.
EXEMPT = "Roadstead-No-Faults"

#: Maximum seconds until a restarted server responds.
RESTART_S = 60.0


@dataclass(slots=True)
class ActiveFault:
    """A fault while its block runs, and afterwards the count of what it did."""

    _send: Callable[[str, Mapping[str, Any]], dict[str, Any]]
    _number: int
    _ended: int | None = None

    @property
    def hits(self) -> int:
        """The number of requests that it has broken."""
        if self._ended is not None:
            return self._ended
        hits: int = self._send("/roadstead/faults/hits", {"fault": self._number})["hits"]
        return hits

    def end(self) -> None:
        """Break nothing more."""
        self._ended = self._send("/roadstead/faults/remove", {"fault": self._number})["hits"]


@dataclass(frozen=True, slots=True)
class FaultInjection:
    """Breaks the API of a cluster.

    The methods that return a context manager break requests while their block runs. They take ``method``: of
    HTTP, ``WATCH``, or ``*``; ``resource``: ``pods``, ``pods/status``, ``widgets.example.com``, or ``*``; and

    * ``times``: the number of requests, all if left out;
    * ``namespace``, ``name``: of the object;
    * ``client``: a part of the client's User-Agent;
    * ``takes_effect``: the request has its effect, and only its answer is broken.
    """

    _send: Callable[[str, Mapping[str, Any]], dict[str, Any]]
    _is_up: Callable[[], bool]

    def refuse(
        self,
        method: str,
        resource: str,
        *,
        status: int,
        times: int | None = None,
        retry_after_s: int | None = None,
        **more: Any,
    ) -> contextlib.AbstractContextManager[ActiveFault]:
        """Answer with 401, 403, 404, 409, 410, 429, 500, 503 or 504, in the API server's words."""
        return self._during(
            action="refuse",
            method=method,
            resource=resource,
            status=status,
            times=times,
            retry_after_s=retry_after_s,
            **more,
        )

    def delay(
        self, method: str, resource: str, *, seconds: float, times: int | None = None, **more: Any
    ) -> contextlib.AbstractContextManager[ActiveFault]:
        """Answer later; with ``WATCH`` the lines of open watches come later."""
        return self._during(
            action="delay", method=method, resource=resource, seconds=seconds, times=times, **more
        )

    def hang(
        self, method: str, resource: str, *, times: int | None = None, **more: Any
    ) -> contextlib.AbstractContextManager[ActiveFault]:
        """Answer nothing until the block ends, and then close the connection: the client's timeout counts."""
        return self._during(action="hang", method=method, resource=resource, times=times, **more)

    def drop(
        self, method: str, resource: str, *, times: int | None = None, **more: Any
    ) -> contextlib.AbstractContextManager[ActiveFault]:
        """Close the connection instead of an answer."""
        return self._during(action="drop", method=method, resource=resource, times=times, **more)

    def cut_watches(self, resource: str = "*") -> int:
        """Reset the connections of open watches; return their number."""
        cut: int = self._send("/roadstead/watches/cut", {"resource": resource})["watches"]
        return cut

    def expire(self, resource: str = "*") -> int:
        """Cut the open watches, and answer 410 to watches from an earlier version; return the number cut."""
        cut: int = self._send("/roadstead/versions/expire", {"resource": resource})["watches"]
        return cut

    def restart(self, down_s: float = 0.2) -> None:
        """Restart the API server with its objects, tokens and address: every connection is reset.

        Args:
            down_s: seconds in which connections are refused.

        Raises:
            TimeoutError: it does not respond again.
        """
        self._send("/roadstead/restart", {"down_s": down_s})
        deadline = time.monotonic() + down_s + RESTART_S
        time.sleep(down_s)
        while not self._is_up():
            if time.monotonic() > deadline:
                raise TimeoutError(f"roadstead does not respond {RESTART_S:g} s after a restart")
            time.sleep(0.02)

    def move_clock(self, seconds: float) -> None:
        """Move the time of objects, controllers and kubelets; ``reset()`` moves it back."""
        self._send("/roadstead/clock", {"seconds": seconds})

    @contextlib.contextmanager
    def _during(self, **fault: Any) -> Iterator[ActiveFault]:
        active = ActiveFault(self._send, self._send("/roadstead/faults/add", fault)["fault"])
        try:
            yield active
        finally:
            active.end()
