"""Port for HTTP extenders."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class TLSSettings:
    """How an HTTPS server is verified, and the client certificate; PEM in base64, empty when not given."""

    insecure: bool = False
    server_name: str = ""
    ca_data: str = ""
    cert_data: str = ""
    key_data: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an HTTP extender is reached.

    Attributes:
        url: What verbs are appended to.
        timeout_s: For one answer, from the connection to its last byte.
    """

    url: str
    timeout_s: float
    tls: TLSSettings = TLSSettings()


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back from an extender.

    Attributes:
        content: The body of a response with status 200; None without such a response.
        problem: Why there was no such response, in a sentence.
    """

    content: bytes | None
    problem: str = ""


class ExtenderPort(Protocol):
    """Speaks to HTTP extenders."""

    def problem_of(self, endpoint: Endpoint) -> str:
        """Why this endpoint cannot be called, such as an invalid certificate; empty when it can."""

    async def post(self, endpoint: Endpoint, verb: str, body: bytes) -> Reply:
        """POST; never raises, never waits longer than the endpoint's timeout, never reads without bound."""

    async def retain(self, endpoints: Collection[Endpoint]) -> None:
        """Close the connections to all other extenders."""
