"""What nodes and pods use: asked of the metrics API (metrics.k8s.io/v1beta1) and of Prometheus."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import aiohttp
import msgspec

from plimsoll.adapters.answering import answer_of
from plimsoll.adapters.errors import APIError
from plimsoll.adapters.session import Session
from plimsoll.control.ports import Answer, Reading, Verdict
from plimsoll.framework.strategy_context import Sample
from plimsoll.model.quantity import QuantityError, nanos

METRICS = "/apis/metrics.k8s.io/v1beta1"

#: Seconds that Prometheus gets to answer, and bytes of an answer that are read.
QUERY_TIMEOUT_S, LONGEST_ANSWER = 10.0, 2**24


class UsageMeter:
    """Reads usage; a reading that makes no sense is left out, the others count."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def nodes(self) -> tuple[Answer, Sequence[Reading]]:
        """Each node's usage, by name."""
        return await self._read(f"{METRICS}/nodes", _node_reading)

    async def pods(self) -> tuple[Answer, Sequence[Reading]]:
        """Each pod's usage, by ``namespace/name``."""
        return await self._read(f"{METRICS}/pods", _pod_reading)

    async def _read(self, path: str, reading: Any) -> tuple[Answer, Sequence[Reading]]:
        try:
            listed = await self._session.object("GET", path)
        except APIError as exc:
            return answer_of(exc), ()
        found = []
        for item in listed.get("items") or ():
            try:
                found.append(reading(item))
            except (KeyError, TypeError, ValueError, QuantityError):
                continue
        return Answer(Verdict.DONE), found

    async def query(self, url: str, promql: str) -> tuple[Answer, Sequence[Sample]]:
        """The instant vector that a Prometheus query returns now."""
        asked = f"Prometheus at {url}"
        timeout = aiohttp.ClientTimeout(total=QUERY_TIMEOUT_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=False) as client,
                client.get(
                    f"{url.rstrip('/')}/api/v1/query", params={"query": promql}, allow_redirects=False
                ) as response,
            ):
                body = await response.content.read(LONGEST_ANSWER + 1)
                while not response.content.at_eof() and len(body) <= LONGEST_ANSWER:
                    body += await response.content.read(LONGEST_ANSWER)
        except TimeoutError:
            return Answer(Verdict.UNKNOWN, f"{asked} did not answer within {QUERY_TIMEOUT_S:.0f} s"), ()
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            return Answer(Verdict.UNKNOWN, f"{asked} cannot be asked: {exc}"), ()
        if len(body) > LONGEST_ANSWER:
            return Answer(Verdict.REFUSED, f"{asked} answered more than {LONGEST_ANSWER >> 20} MiB"), ()
        return _vector(asked, response.status, body)


class _Series(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, rename="camel"):
    result_type: str
    result: list[msgspec.Raw]


class _QueryAnswer(msgspec.Struct):
    status: str
    error: str = ""
    data: _Data | None = None


def _vector(asked: str, status: int, body: bytes) -> tuple[Answer, Sequence[Sample]]:
    problem = ""
    samples: list[Sample] = []
    try:
        answer = msgspec.json.decode(body, type=_QueryAnswer)
        if answer.status != "success" or answer.data is None:
            problem = answer.error or "no success, and no reason given"
        elif answer.data.result_type != "vector":
            problem = f"the query returns a {answer.data.result_type}, not an instant vector"
        else:
            series = (msgspec.json.decode(each, type=_Series) for each in answer.data.result)
            samples = [Sample(each.metric, float(each.value[1])) for each in series]
    except (msgspec.MsgspecError, ValueError) as exc:
        problem = f"Prometheus does not answer so, check the url ({exc})"
    if problem:
        return Answer(Verdict.REFUSED, f"{asked} answered HTTP {status}: {problem[:300]}"), ()
    return Answer(Verdict.DONE), samples


def _node_reading(item: Mapping[str, Any]) -> Reading:
    return Reading(item["metadata"]["name"], _usage(item["usage"]), _moment(item))


def _pod_reading(item: Mapping[str, Any]) -> Reading:
    total: dict[str, int] = {}
    for container in item["containers"]:
        for name, amount in _usage(container["usage"]).items():
            total[name] = total.get(name, 0) + amount
    meta = item["metadata"]
    return Reading(f"{meta['namespace']}/{meta['name']}", total, _moment(item))


def _usage(given: Mapping[str, Any]) -> dict[str, int]:
    return {name: nanos(given[name]) for name in ("cpu", "memory")}


def _moment(item: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(item["timestamp"]).timestamp()
