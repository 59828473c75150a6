"""Posts CloudEvents to one address, in structured mode; the response is not read beyond its status.

Redirects are not followed, and neither proxy, cookies nor .netrc of the environment are used, so the
credential goes to the given address only. Source: CloudEvents 1.0.2, HTTP protocol binding.
"""

from collections.abc import Mapping
from pathlib import Path

import aiohttp
import msgspec

#: Seconds for one request.
TIMEOUT_S = 10.0

STRUCTURED = "application/cloudevents+json; charset=utf-8"

#: Beginnings of addresses that can be posted to.
SCHEMES = ("http://", "https://")


class CloudEventClient:
    """Posts to one address.

    Args:
        token_file: File with a bearer token, read for each request; None for no credential.
    """

    def __init__(self, url: str, token_file: Path | None = None) -> None:
        self._url = url
        self._token_file = token_file

    async def post(self, event: Mapping[str, object]) -> str:
        """Post an event; returns why it was not accepted, "" if it was."""
        headers = {"Content-Type": STRUCTURED}
        try:
            if self._token_file is not None:
                token = self._token_file.read_text(encoding="ascii").strip()
                headers["Authorization"] = f"Bearer {token}"
            async with (
                aiohttp.ClientSession(
                    cookie_jar=aiohttp.DummyCookieJar(),
                    timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
                    trust_env=False,
                ) as client,
                client.post(
                    self._url, data=msgspec.json.encode(event), headers=headers, allow_redirects=False
                ) as response,
            ):
                status = response.status
        except TimeoutError:
            return f"no answer within {TIMEOUT_S:.0f} s"
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            return type(exc).__name__  # the sentence may have the address, with a secret in its path
        return "" if status < 300 else f"HTTP {status}"
