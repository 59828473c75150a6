"""Queries Prometheus' HTTP API; its responses are not trusted.

Nothing is sent except what the policy names: no credentials of ours, no proxy, cookie or .netrc of the
environment. Redirects are not followed and responses are not decompressed. A slow, endless or malformed
response becomes a sentence that contains neither the response nor the credentials.
"""

from collections.abc import Sequence
from functools import lru_cache
from ssl import SSLContext, SSLError

import aiohttp
import msgspec

from plimsoll.api.v1alpha1.metrics_providers import PROMETHEUS
from plimsoll.api.v1alpha1.prometheus import HTTPS, PrometheusProviderSpec, is_plain_url
from plimsoll.framework.descheduling.measurements import Sample
from plimsoll.http_services.credentials import CredentialsError, PrometheusCredentials, ShownCredentials
from plimsoll.http_services.extenders import tls_context
from plimsoll.kube.session.http_client import bounded
from plimsoll.kube.session.session import JSON
from plimsoll.model.decoding import read_with
from plimsoll.ports.extenders import TLSSettings
from plimsoll.ports.observer import Observer
from plimsoll.ports.usage import result_of
from plimsoll.ports.writes import WriteOutcome, WriteResult

#: Timeout of a query in seconds, and maximum bytes of a response.
QUERY_TIMEOUT_S, LONGEST_ANSWER = 10.0, 2**24


class PrometheusClient:
    """Queries instant vectors."""

    def __init__(self, credentials: PrometheusCredentials, observer: Observer | None = None) -> None:
        self._credentials = credentials
        self._observer = observer or Observer()

    async def query(
        self, server: PrometheusProviderSpec, queries: Sequence[str]
    ) -> Sequence[tuple[WriteResult, Sequence[Sample]]]:
        """The instant vectors that queries return now, in their order; each outcome is counted."""
        found = await self._answers(server, queries)
        for answer, _ in found:
            self._observer.usage_asked(PROMETHEUS, result_of(answer))
        return found

    async def _answers(
        self, server: PrometheusProviderSpec, queries: Sequence[str]
    ) -> Sequence[tuple[WriteResult, Sequence[Sample]]]:
        """The instant vectors that queries return now, in their order.

        Queries are sent one by one over one connection. After a query without a response the rest is not
        sent, so that a silent server costs one timeout. Policies choose the address, and their authors may
        read the outcome; therefore the failure is a sentence of ours, with the HTTP status and one of
        Prometheus' error types.
        """
        url = server.url
        if not is_plain_url(url):
            problem = "prometheus.url is not an address without user, query and fragment"
            return [_refused(problem)] * len(queries)
        name = f"Prometheus at {url}"
        try:
            shown = await self._credentials.of(server)
            tls = _tls_context(shown.tls) if url.startswith(HTTPS) else True
        except CredentialsError as exc:
            return [_refused(f"{name} is not asked: {exc}")] * len(queries)
        except (SSLError, ValueError, OSError):
            problem = "a certificate or key in the Secrets of tls is not PEM, or they do not match"
            return [_refused(f"{name} is not asked: {problem}")] * len(queries)
        found: list[tuple[WriteResult, Sequence[Sample]]] = []
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, limit=1),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=QUERY_TIMEOUT_S),
            trust_env=False,
            auto_decompress=False,
            headers={"Accept": JSON, "Accept-Encoding": "identity"} | dict(shown.headers),
        ) as client:
            for promql in queries:
                unanswered = found and found[-1][0].verdict is WriteOutcome.UNKNOWN
                found.append(found[-1] if unanswered else await _asked(client, name, url, promql, shown))
        return found


async def _asked(
    client: aiohttp.ClientSession, name: str, url: str, promql: str, shown: ShownCredentials
) -> tuple[WriteResult, Sequence[Sample]]:
    try:
        async with client.get(
            f"{url.rstrip('/')}/api/v1/query",
            params={"query": promql},
            allow_redirects=False,
            server_hostname=shown.tls.server_name or None,
        ) as response:
            if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                problem = "the answer is compressed, which was not asked for"
                return _refused(f"{name} answered HTTP {response.status}: {problem}")
            body = await bounded(response, LONGEST_ANSWER)
    except TimeoutError:
        return _unanswered(f"{name} did not answer within {QUERY_TIMEOUT_S:.0f} s")
    except (aiohttp.ClientError, OSError, ValueError) as exc:
        return _unanswered(f"{name} cannot be asked: {_failure(exc)}")
    if body is None:
        return _refused(f"{name} answered more than {LONGEST_ANSWER >> 20} MiB")
    if response.status in _CREDENTIALS:
        what = "it does not accept the credentials" if shown.headers else "it wants credentials"
        return _refused(f"{name} answered HTTP {response.status}: {what}")
    if 300 <= response.status < 400:
        return _refused(f"{name} answered HTTP {response.status}: redirects are not followed, check the url")
    return _vector(name, response.status, body)


@lru_cache(maxsize=8)
def _tls_context(settings: TLSSettings) -> SSLContext:
    """The TLS settings; cached, because reading the system's certificates takes tens of milliseconds."""
    return tls_context(settings)


#: Statuses that concern credentials.
_CREDENTIALS = (401, 403)


def _unanswered(problem: str) -> tuple[WriteResult, Sequence[Sample]]:
    return WriteResult(WriteOutcome.UNKNOWN, problem), ()


def _refused(problem: str) -> tuple[WriteResult, Sequence[Sample]]:
    return WriteResult(WriteOutcome.REFUSED, problem), ()


def _failure(exc: Exception) -> str:
    """The failure in words of ours: an exception's text may quote the server's response."""
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


#: Remedies for Prometheus' error types (https://prometheus.io/docs/prometheus/latest/querying/api).
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
            samples = [Sample(each.metric, float(each.value[1]), each.value[0]) for each in series]
    except (msgspec.MsgspecError, ValueError):
        problem = "this is not an answer of Prometheus' HTTP API, check the url"
    if problem:
        return _refused(f"{server} answered HTTP {status}: {problem}")
    return WriteResult(WriteOutcome.DONE), samples
