"""Calls webhooks and checks the form of their answers.

Source: apiserver v1.36 ``pkg/util/webhook``, ``pkg/admission/plugin/webhook/request``,
``apiextensions-apiserver/pkg/apiserver/conversion``; the texts of failures
are those of Go's HTTP client and of client-go.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import functools
import json
import re
import ssl
import uuid
from typing import TYPE_CHECKING, Any

import aiohttp
import orjson
from yarl import URL

from roadstead.schemas.schemas import go_type
from roadstead.store.progress import Answer, Progress, Unanswered

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from roadstead.store.api import Api
    from roadstead.store.progress import Question, Value

#: Seconds in which a request is answered, whatever its webhooks do, as of kube-apiserver.
REQUEST_S = 60.0
_MEDIA = "application/json"
_GROUPS = {"AdmissionReview": "admission.k8s.io", "ConversionReview": "apiextensions.k8s.io"}
#: What precedes the reason why a webhook could not be called, and why its answer cannot be used.
_FAULTS = {
    "AdmissionReview": ("failed to call webhook: ", "received invalid webhook response: "),
    "ConversionReview": ("", ""),
}
_STATUSES = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "{text}",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    500: "an error on the server ({quoted}) has prevented the request from succeeding",
    503: "the server is currently unable to handle the request",
    504: (
        "the server was unable to return a response in the time allotted, "
        "but may still be processing the request"
    ),
}
_OTHER_STATUS = "the server responded with the status code {code} but did not return more information"


class _UnusableError(Exception):
    """An answer that is not one."""


class WebhookCaller:
    """Runs requests until all questions of theirs are answered.

    Args:
        api: what they read and write.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def trying(self, progress: Progress) -> AbstractContextManager[None]:
        """As ``Api.trying``."""
        return self._api.trying(progress)

    async def run(self, request: Callable[[], Value]) -> Value:
        """Run a request, and again after each answer that it needs.

        Raises:
            TimeoutError: it takes more than a minute.
        """
        progress = Progress()
        timeout: asyncio.Timeout | None = None
        async with contextlib.AsyncExitStack() as stack:
            while True:
                try:
                    with self.trying(progress):
                        return request()
                except Unanswered as unanswered:
                    if timeout is None:
                        timeout = await stack.enter_async_context(asyncio.timeout(REQUEST_S))
                    await self.answer(unanswered, progress)

    async def answer(self, unanswered: Unanswered, progress: Progress) -> None:
        """Ask what a request wants to know, all at a time, and keep the answers."""
        questions = unanswered.questions
        answers = await asyncio.gather(*map(self._answer, questions))
        progress.answers.update(zip(questions, answers, strict=True))

    async def _answer(self, question: Question) -> Answer:
        uid = str(uuid.uuid4())
        version = f"{_GROUPS[question.review]}/{question.version}"
        uncalled, invalid = _FAULTS[question.review]
        # The request is JSON already; splicing the uid in saves encoding the objects twice.
        body = b'{"kind":"%s","apiVersion":"%s","request":{"uid":"%s",%s}' % (
            question.review.encode(),
            version.encode(),
            uid.encode(),
            question.request[1:],
        )
        try:
            review = _decoded(await self._posted(question, body), question)
        except _UnusableError as error:
            return Answer({}, f"{uncalled}{error}")
        try:
            check = _admission if question.review == "AdmissionReview" else _conversion
            return Answer(check(review, uid, question))
        except _UnusableError as error:
            return Answer({}, f"{invalid}{error}")

    async def _posted(self, question: Question, body: bytes) -> bytes:
        """The body of a webhook's answer.

        Raises:
            _UnusableError: it has not answered, in the words of Go's client.
        """
        if self._session is None:
            # A new connection for each call: a webhook that was restarted on its port is found.
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))
        shown = f"{question.url}?timeout={question.timeout_s}s"
        url = named = URL(shown, encoded=True)
        headers = {"Content-Type": _MEDIA, "Accept": _MEDIA}
        if question.port:
            headers["Host"] = named.authority
            url = named.with_host("127.0.0.1").with_port(question.port)
        try:
            async with (
                asyncio.timeout(question.timeout_s),
                self._session.post(
                    url,
                    data=body,
                    headers=headers,
                    ssl=_verifying(question.ca_bundle),
                    server_hostname=named.host,
                ) as answer,
            ):
                raw = await answer.read()
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            raise _UnusableError(f'Post "{shown}": {_why(error, url)}') from error
        if answer.content_type == _MEDIA and (status := _failure(raw)):
            raise _UnusableError(str(status.get("message") or "unknown"))
        if answer.status // 100 != 2:
            is_text = answer.content_type.startswith("text/")
            text = raw.decode(errors="replace").strip() if is_text else "unknown"
            known = _STATUSES.get(answer.status, _OTHER_STATUS)
            raise _UnusableError(known.format(text=text, quoted=json.dumps(text), code=answer.status))
        if not raw:
            media = answer.headers.get("Content-Type", "")
            raise _UnusableError(
                f"0-length response with status code: {answer.status} and content type: {media}"
            )
        return raw


def _why(error: Exception, url: URL) -> str:
    """The reason of a failed call."""
    place = f"{url.host}:{url.port}"
    match error:
        case TimeoutError():
            return "context deadline exceeded"
        case aiohttp.ClientConnectorCertificateError():
            reason = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
            return f"tls: failed to verify certificate: x509: {_X509.get(reason, reason)}"
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {url.host}: no such host"
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ConnectionRefusedError):
            return f"dial tcp {place}: connect: connection refused"
        case aiohttp.ServerDisconnectedError() | ConnectionResetError():
            return "EOF"
    return str(error)


_X509 = {
    "self-signed certificate": "certificate signed by unknown authority",
    "unable to get local issuer certificate": "certificate signed by unknown authority",
    "self-signed certificate in certificate chain": "certificate signed by unknown authority",
    "certificate has expired": "certificate has expired or is not yet valid",
}


@functools.lru_cache(maxsize=64)
def _verifying(ca_bundle: str) -> ssl.SSLContext:
    """TLS that accepts what a bundle signs, or with "" what the system trusts.

    Raises:
        ValueError: the bundle has no certificate.
    """
    if not ca_bundle:
        return ssl.create_default_context()
    try:
        text = base64.b64decode(ca_bundle).decode("ascii")
        context = ssl.create_default_context(cadata=text)
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as error:
        raise ValueError("unable to load root certificates: unable to parse bytes as PEM block") from error
    # As Go: authorities need no key identifiers, and what is in the bundle is trusted, also a server's own
    # certificate, which is what controller-runtime's envtest writes there.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _failure(raw: bytes) -> dict[str, Any] | None:
    """A Status that tells a failure, where an answer is one."""
    with contextlib.suppress(orjson.JSONDecodeError):
        found = orjson.loads(raw)
        if isinstance(found, dict) and found.get("kind") == "Status" and found.get("status") != "Success":
            return found
    return None


_HEAD = (
    'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
    'Kind string "json:\\"kind,omitempty\\"" }'
)
_SCHEME = "k8s.io/apiserver/pkg/util/webhook/client.go:71"


def _decoded(raw: bytes, question: Question) -> dict[str, Any]:
    """An answer as a review.

    Raises:
        _UnusableError: it cannot be read as one, in the words of Go's decoder.
    """
    try:
        review = orjson.loads(raw)
    except orjson.JSONDecodeError:
        review = raw.decode(errors="replace")  # a text in YAML, which is read as well
    if not isinstance(review, dict):
        given = go_type(review)
        raise _UnusableError(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {given} into {_HEAD}"
        )
    group = _GROUPS[question.review]
    version, kind = review.get("apiVersion") or "", review.get("kind") or ""
    if version and kind:
        if kind != question.review or version not in (f"{group}/v1", f"{group}/v1beta1"):
            raise _UnusableError(
                f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"'
            )
        given, wanted = version.rpartition("/")[2], question.version
        if given != wanted:
            raise _UnusableError(f"converting ({given}.{kind}) to ({wanted}.{kind}): unknown conversion")
    response = review.get("response")
    allowed = response.get("allowed") if isinstance(response, dict) else None
    if allowed is not None and not isinstance(allowed, bool):
        why = f"cannot unmarshal {go_type(allowed)} into Go struct field AdmissionResponse.response.allowed"
        raise _UnusableError(f"json: {why} of type bool")
    if isinstance(response, dict) and isinstance(patch := response.get("patch"), str):
        try:
            base64.b64decode(patch, validate=True)
        except binascii.Error as error:
            raise _UnusableError(f"illegal base64 data at input byte {_stray(patch)}") from error
    return review


def _stray(text: str) -> int:
    """The index of the first character that is not of base64."""
    found = re.search(r"[^A-Za-z0-9+/=\r\n]", text)
    return len(text) if found is None else found.start()


def _conversion(review: Any, uid: str, question: Question) -> dict[str, Any]:
    """The response of a ConversionReview.

    Raises:
        _UnusableError: it does not answer the question, or says that the conversion has failed.
    """
    response = review.get("response") if isinstance(review, dict) else None
    if question.version == "v1":
        _check_kind(review, question)
    if not isinstance(response, dict):
        raise _UnusableError("no response provided")
    if question.version == "v1":
        _check_uid(response, uid)
    result = response.get("result") or {}
    if result.get("status") != "Success":
        status = result.get("status", "")
        raise _UnusableError(result.get("message") or f"response.result.status was '{status}', not 'Success'")
    return response


def _check_kind(review: Any, question: Question) -> None:
    wanted = f"{_GROUPS[question.review]}/v1, Kind={question.review}"
    given = f"{review.get('apiVersion') or '/'}, Kind={review.get('kind') or ''}"
    if given != wanted:
        raise _UnusableError(f"expected webhook response of {wanted}, got {given}")


def _check_uid(response: dict[str, Any], uid: str) -> None:
    if (given := response.get("uid") or "") != uid:
        raise _UnusableError(f'expected response.uid="{uid}", got "{given}"')


def _admission(review: Any, uid: str, question: Question) -> dict[str, Any]:
    """The response of an AdmissionReview.

    Raises:
        _UnusableError: it does not answer the question.
    """
    response = review.get("response") if isinstance(review, dict) else None
    if not isinstance(response, dict):
        raise _UnusableError("webhook response was absent")
    if question.version == "v1":
        _check_uid(response, uid)
        _check_kind(review, question)
        patch, kind = response.get("patch"), response.get("patchType")
        if not question.mutating:
            for name, value in (("patch", patch), ("patchType", kind)):
                if value:
                    raise _UnusableError(f"validating webhook may not return response.{name}")
        elif patch and kind is None:
            raise _UnusableError("webhook returned response.patch but not response.patchType")
        elif kind is not None and not patch:
            raise _UnusableError("webhook returned response.patchType but not response.patch")
        elif patch and kind != "JSONPatch":
            raise _UnusableError(f'webhook returned invalid response.patchType of "{kind}"')
    return response
