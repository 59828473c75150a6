"""Port for HTTP extenders."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

import msgspec


@dataclass(frozen=True, slots=True)
class TLSSettings:
    """Verification of an HTTPS server, and the client certificate; PEM in base64, empty when not given."""

    insecure: bool = False
    server_name: str = ""
    ca_data: str = ""
    cert_data: str = ""
    key_data: str = field(default="", repr=False)


class Endpoint(msgspec.Struct, frozen=True):
    """The address of an HTTP extender.

    Attributes:
        url: The URL to which verbs are appended.
        timeout_s: Timeout of one response in seconds, from connecting to its last byte.
    """

    url: str
    timeout_s: float
    tls: TLSSettings = TLSSettings()


class Reply(msgspec.Struct, frozen=True):
    """The result of a request to an extender.

    Attributes:
        content: The body of a response with status 200; None without such a response.
        problem: Why there is no such response, in a sentence.
    """

    content: bytes | None
    problem: str = ""


class ExtenderPort(Protocol):
    """Sends requests to HTTP extenders."""

    def problem_of(self, endpoint: Endpoint) -> str:
        """Why this endpoint cannot be called, such as an invalid certificate; empty when it can be."""

    async def post(self, endpoint: Endpoint, verb: str, body: bytes) -> Reply:
        """Send a POST; never raises, never exceeds the endpoint's timeout, never reads without bound."""

    async def retain(self, endpoints: Collection[Endpoint]) -> None:
        """Close the connections to all other extenders."""
