"""Reads the credentials for Prometheus servers: tokens, passwords, headers and certificates.

Each Secret is read individually, from the operator's own namespace, before every query, so a changed Secret
is used with the next query. A Secret is sent only to the servers that its annotation
``plimsoll.dev/prometheus-url`` names, so that a policy cannot send it elsewhere.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.api.v1alpha1.prometheus import PrometheusProviderSpec, PrometheusTLS
from plimsoll.framework.errors import PlimsollError
from plimsoll.kube.session.errors import APIError, NotFound, Unauthorized
from plimsoll.kube.session.session import Session
from plimsoll.ports.extenders import TLSSettings

#: The annotation with the servers to which a Secret, or the projected token, may be sent; separated by
#: spaces.
ADDRESSES = "plimsoll.dev/prometheus-url"

#: Where the component prometheus-access projects the token and its annotation.
TOKEN_FOLDER = Path("/var/run/secrets/plimsoll.dev/prometheus")

#: The key of a Secret with a token, as in descheduler.
TOKEN_KEY = "prometheusAuthToken"  # noqa: S105 - the key, not the token

#: Maximum number of headers in a Secret, and maximum length of a value in characters.
MOST_HEADERS, LONGEST_VALUE = 16, 16_384

#: Headers that a Secret may not set: other headers depend on them, or a field of the policy sets them.
RESERVED = frozenset(
    (
        *("accept", "accept-encoding", "authorization", "connection", "content-length", "content-type"),
        *("cookie", "expect", "host", "proxy-authorization", "proxy-connection", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    )
)

_HEADER_NAME = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_]*")


class CredentialsError(PlimsollError):
    """Credentials for Prometheus cannot be read; the text is a sentence without any part of them."""


@dataclass(frozen=True, slots=True)
class ShownCredentials:
    """The credentials for a server, and the TLS settings that verify it."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: TLSSettings = field(default_factory=TLSSettings)


class PrometheusCredentials:
    """Reads credentials from the API server and the file system.

    Args:
        namespace: The operator's own namespace; "" has no Secrets.
        token_folder: The directory with the files ``token`` and ``url``.
    """

    def __init__(self, session: Session, namespace: str, token_folder: Path = TOKEN_FOLDER) -> None:
        self._session = session
        self._namespace = namespace
        self._token_folder = token_folder

    async def of(self, server: PrometheusProviderSpec) -> ShownCredentials:
        """The current credentials for a server.

        Raises:
            CredentialsError: They cannot be read, or are not meant for this server.
        """
        headers: dict[str, str] = {}
        if server.headers_secret is not None:
            headers |= await self._headers(server.headers_secret, server.url)
        if server.auth_token is not None:
            reference = server.auth_token.secret_reference
            if reference.namespace not in (None, self._namespace):
                raise CredentialsError(
                    "authToken.secretReference.namespace is not the operator's own,"
                    f" {self._namespace or 'which is unknown'}; leave it out"
                )
            secret = await self._secret(reference.name, server.url)
            headers["Authorization"] = f"Bearer {secret.line(TOKEN_KEY)}"
        elif server.service_account_token:
            headers["Authorization"] = f"Bearer {self._projected(server.url)}"
        elif server.basic_auth is not None:
            secret = await self._secret(server.basic_auth.secret_name, server.url)
            user, password = secret.line("username"), secret.line("password")
            if ":" in user:
                raise CredentialsError(f"the username in {secret} has a colon, which basicAuth cannot send")
            pair = base64.b64encode(f"{user}:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {pair}"
        return ShownCredentials(headers, await self._tls(server.tls, server.url))

    async def _headers(self, name: str, url: str) -> dict[str, str]:
        secret = await self._secret(name, url)
        if len(secret.data) > MOST_HEADERS:
            raise CredentialsError(
                f"{secret} has {len(secret.data)} keys; at most {MOST_HEADERS} headers are sent"
            )
        for key in secret.data:
            if _HEADER_NAME.fullmatch(key) is None or key.lower() in RESERVED:
                raise CredentialsError(f"the key {key:.64} of {secret} is no header that may be set")
        return {key: secret.line(key) for key in secret.data}

    async def _tls(self, tls: PrometheusTLS | None, url: str) -> TLSSettings:
        if tls is None:
            return TLSSettings()
        authority = certificate = key = ""
        if tls.ca_secret is not None:
            authority = (await self._secret(tls.ca_secret)).text("ca.crt")
        if tls.client_cert_secret is not None:
            pair = await self._secret(tls.client_cert_secret, url)
            certificate, key = pair.text("tls.crt"), pair.text("tls.key")
        return TLSSettings(tls.insecure_skip_verify, tls.server_name or "", authority, certificate, key)

    async def _secret(self, name: str, url: str = "") -> "_Secret":
        """A Secret of the operator's namespace; if it is to be sent, it must name the server."""
        if not self._namespace:
            raise CredentialsError("the operator's namespace is unknown, therefore no Secret can be read")
        where = f"Secret {self._namespace}/{name}"
        try:
            found = await self._session.object("GET", f"/api/v1/namespaces/{self._namespace}/secrets/{name}")
        except NotFound as exc:
            raise CredentialsError(f"{where} does not exist") from exc
        except Unauthorized as exc:
            raise CredentialsError(
                f"the operator may not read {where}; deploy/components/prometheus-access allows it"
            ) from exc
        except APIError as exc:
            raise CredentialsError(f"{where} cannot be read now: the API server did not answer") from exc
        data, metadata = found.get("data"), found.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        servers = annotations.get(ADDRESSES) if isinstance(annotations, dict) else None
        if url:
            _check_server(where, servers, url)
        return _Secret(where, data if isinstance(data, dict) else {})

    def _projected(self, url: str) -> str:
        try:
            _check_server("the projected token", (self._token_folder / "url").read_text("utf-8"), url)
            token = (self._token_folder / "token").read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as exc:
            raise CredentialsError(
                "there is no projected token; deploy/components/prometheus-access adds it"
            ) from exc
        return _sendable(token, "the projected token")


@dataclass(frozen=True, slots=True)
class _Secret:
    where: str
    data: Mapping[str, Any] = field(repr=False)

    def __str__(self) -> str:
        return self.where

    def text(self, key: str) -> str:
        """The value of a key, decoded from base64."""
        value = self.data.get(key)
        if not isinstance(value, str) or not value:
            raise CredentialsError(f"{self.where} has no key {key}")
        return value

    def line(self, key: str) -> str:
        """The value of a key, checked for use in a header."""
        try:
            value = base64.b64decode(self.text(key), validate=True).decode("utf-8").strip()
        except (binascii.Error, ValueError) as exc:
            raise CredentialsError(f"the value of {key} in {self.where} is no text") from exc
        return _sendable(value, f"the value of {key} in {self.where}")


def _check_server(what: str, named: Any, url: str) -> None:
    """Check that a secret's owner allows this server: a policy may name any server."""
    servers = named.split() if isinstance(named, str) else []
    if url.rstrip("/") not in {each.rstrip("/") for each in servers}:
        raise CredentialsError(f"{what} is not for this server; its annotation {ADDRESSES} must name it")


def _sendable(value: str, what: str) -> str:
    if not value or len(value) > LONGEST_VALUE or not value.isprintable():
        raise CredentialsError(f"{what} cannot be sent in a header: it is empty, too long or not printable")
    return value
