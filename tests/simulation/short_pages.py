"""Lists of an API server that streams none: short pages with tokens that expire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from urllib.parse import parse_qsl, urlencode

import orjson

from roadstead.server.request_handler import Request
from roadstead.store.store import event_line
from roadstead.values.status_errors import StatusError
from simulation.exchanges import Answer
from simulation.refusals import status

#: Objects in a page, and the share of tokens that have expired when they are shown.
PAGE, EXPIRED = 4, 0.1

#: How a server with etcd 3.4 refuses to stream a list, in the body of a watch that it has accepted.
NO_PROGRESS = (
    "a watch stream was requested by the client but the required storage feature RequestWatchProgress is "
    "disabled"
)

TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an inconsistent "
    "list - objects that were created, modified, or deleted between the time the first chunk was returned "
    "and now may show up in the list."
)


class ShortPages:
    """How such a server differs.

    Args:
        random: Of this alone.
        is_over: Whether nothing goes wrong any more.

    Attributes:
        expired: How many tokens have.
    """

    def __init__(self, random: Random, is_over: Callable[[], bool]) -> None:
        self._random = random
        self._is_over = is_over
        self.expired = 0

    def shortened(self, request: Request) -> Request:
        """The request with a smaller limit."""
        query = dict(parse_qsl(request.query_string, keep_blank_values=True))
        if request.method != "GET" or "limit" not in query:
            return request
        return replace(request, query_string=urlencode({**query, "limit": str(PAGE)}))

    def refusal(self, request: Request) -> Answer | None:
        """What is answered to a token that has expired; None where it has not."""
        query = dict(parse_qsl(request.query_string))
        if "continue" not in query or self._is_over() or self._random.random() >= EXPIRED:
            return None
        self.expired += 1
        body = orjson.loads(status(410, "Expired", TOO_OLD))
        return 410, orjson.dumps({**body, "metadata": {"continue": query["continue"]}})

    def watch_refusal(self, request: Request) -> bytes:
        """The only line of a watch that should begin with a list; none for others."""
        if "sendInitialEvents" not in dict(parse_qsl(request.query_string)):
            return b""
        refused = StatusError(500, "InternalError", f"Internal error occurred: {NO_PROGRESS}")
        return event_line("ERROR", orjson.dumps(refused.status))
