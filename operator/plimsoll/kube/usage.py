"""Reads usage of nodes and pods from the metrics API (metrics.k8s.io/v1beta1) and Prometheus."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import aiohttp
import msgspec

from plimsoll.api.v1alpha1.metrics_providers import is_plain_url
from plimsoll.framework.descheduling.measurements import Sample
from plimsoll.kube.session.answer_bodies import bounded
from plimsoll.kube.session.errors import APIError, answer_of
from plimsoll.kube.session.session import JSON, Session
from plimsoll.model.decoding import read_with
from plimsoll.model.quantity import nanos
from plimsoll.ports.usage import UsageReading
from plimsoll.ports.writes import WriteOutcome, WriteResult

METRICS = "/apis/metrics.k8s.io/v1beta1"

#: Seconds that Prometheus gets to answer, and bytes of an answer that are read.
QUERY_TIMEOUT_S, LONGEST_ANSWER = 10.0, 2**24


class UsageMeter:
    """Reads usage; a reading that makes no sense is left out, the others count."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def nodes(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """Each node's usage, keyed by name."""
        return await self._read(f"{METRICS}/nodes", _node_reading)

    async def pods(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """Each pod's usage, keyed by ``namespace/name``."""
        return await self._read(f"{METRICS}/pods", _pod_reading)

    async def _read(self, path: str, reading: Any) -> tuple[WriteResult, Sequence[UsageReading]]:
        try:
            listed = await self._session.object("GET", path)
        except APIError as exc:
            return answer_of(exc), ()
        found = []
        items = listed.get("items")
        for item in items if isinstance(items, list) else ():
            with suppress(AttributeError, KeyError, OverflowError, TypeError, ValueError):
                found.append(reading(item))
        return WriteResult(WriteOutcome.DONE), found

    async def query(self, url: str, promql: str) -> tuple[WriteResult, Sequence[Sample]]:
        """The instant vector that a Prometheus query returns now.

        Policies choose the address, and their writers may read the outcome: a sentence of ours says what went
        wrong, with the HTTP status and one of Prometheus' error types, without the answer's text.
        """
        if not is_plain_url(url):
            return _refused("prometheus.url is not an address without user, query and fragment")
        server = f"Prometheus at {url}"
        timeout = aiohttp.ClientTimeout(total=QUERY_TIMEOUT_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=False, auto_decompress=False) as client,
                client.get(
                    f"{url.rstrip('/')}/api/v1/query",
                    params={"query": promql},
                    headers={"Accept": JSON, "Accept-Encoding": "identity"},
                    allow_redirects=False,
                ) as response,
            ):
                if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                    problem = "the answer is compressed, which was not asked for"
                    return _refused(f"{server} answered HTTP {response.status}: {problem}")
                body = await bounded(response, LONGEST_ANSWER)
        except TimeoutError:
            problem = f"{server} did not answer within {QUERY_TIMEOUT_S:.0f} s"
            return WriteResult(WriteOutcome.UNKNOWN, problem), ()
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            return WriteResult(WriteOutcome.UNKNOWN, f"{server} cannot be asked: {_failure(exc)}"), ()
        if body is None:
            return _refused(f"{server} answered more than {LONGEST_ANSWER >> 20} MiB")
        return _vector(server, response.status, body)


def _refused(problem: str) -> tuple[WriteResult, Sequence[Sample]]:
    return WriteResult(WriteOutcome.REFUSED, problem), ()


def _failure(exc: Exception) -> str:
    """Why there was no answer, in words of ours: an exception's text may quote what the server sent."""
    match exc:
        case aiohttp.ClientConnectorDNSError():
            return "its name cannot be resolved"
        case aiohttp.ClientSSLError():
            return "its TLS certificate cannot be verified, or it does not speak TLS"
        case aiohttp.ClientConnectorError():
            return f"no connection ({exc.os_error.strerror or 'no reason given'})"
        case aiohttp.ServerDisconnectedError() | ConnectionError():
            return "it closed the connection"
        case aiohttp.InvalidURL():
            return "its address is not valid"
        case _:
            return "the answer is not HTTP"


#: What to do about Prometheus' error types (https://prometheus.io/docs/prometheus/latest/querying/api).
_ERROR_TYPES = {
    "bad_data": "check the query",
    "canceled": "the query was cancelled",
    "execution": "the query cannot be executed",
    "internal": "its log says more",
    "not_acceptable": "check the url",
    "not_found": "check the url",
    "timeout": "the query took too long",
    "unavailable": "it is not ready",
}

_RESULT_TYPES = frozenset({"matrix", "scalar", "streams", "string"})


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, rename="camel"):
    result_type: str
    result: list[msgspec.Raw]


class _QueryAnswer(msgspec.Struct, rename="camel"):
    status: str
    error_type: str = ""
    data: _Data | None = None


_SERIES, _QUERY_ANSWER = msgspec.json.Decoder(_Series), msgspec.json.Decoder(_QueryAnswer)


def _vector(server: str, status: int, body: bytes) -> tuple[WriteResult, Sequence[Sample]]:
    problem = ""
    samples: list[Sample] = []
    try:
        answer = read_with(_QUERY_ANSWER, body)
        if answer.status != "success" or answer.data is None:
            hint = _ERROR_TYPES.get(answer.error_type)
            problem = f"error type {answer.error_type}, {hint}" if hint else "no success"
        elif answer.data.result_type != "vector":
            kind = answer.data.result_type if answer.data.result_type in _RESULT_TYPES else "different type"
            problem = f"the query returns a {kind}, not an instant vector"
        else:
            series = (read_with(_SERIES, each) for each in answer.data.result)
            samples = [Sample(each.metric, float(each.value[1])) for each in series]
    except (msgspec.MsgspecError, ValueError):
        problem = "this is not an answer of Prometheus' HTTP API, check the url"
    if problem:
        return _refused(f"{server} answered HTTP {status}: {problem}")
    return WriteResult(WriteOutcome.DONE), samples


def _node_reading(item: Mapping[str, Any]) -> UsageReading:
    return UsageReading(str(item["metadata"]["name"]), _usage(item["usage"]), _moment(item))


def _pod_reading(item: Mapping[str, Any]) -> UsageReading:
    total: dict[str, int] = {}
    for container in item["containers"]:
        for name, amount in _usage(container["usage"]).items():
            total[name] = total.get(name, 0) + amount
    meta = item["metadata"]
    return UsageReading(f"{meta['namespace']}/{meta['name']}", total, _moment(item))


def _usage(given: Mapping[str, Any]) -> dict[str, int]:
    return {name: nanos(given[name]) for name in ("cpu", "memory")}


def _moment(item: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(item["timestamp"]).timestamp()
