"""Parses HTTP/1.1 responses from the bytes of a connection, within fixed bounds.

llhttp, through httptools, implements the grammar. This module rejects what llhttp accepts and a client must
not: duplicate framing, transfer encodings other than ``chunked``, and endless responses (docs/adr/0016). Each
byte is parsed once, so the work is linear in the bytes, however they are split into pieces.
"""

import httptools
import msgspec

#: Maximum bytes of one response's body, and of all else: status lines, headers, interim responses (1xx),
#: chunk sizes and extensions, trailers. The API server accepts objects of up to 3 MiB.
BODY_BYTES, FRAMING_BYTES = 2**24, 2**16

#: Maximum bytes of the body of a read: a page of a list has five hundred objects.
READ_BYTES = 2**30


class Response(msgspec.Struct, frozen=True):
    """A response.

    Attributes:
        status: The HTTP status.
        is_last: Whether the connection ends with this response.
    """

    status: int
    content: bytes
    is_last: bool


class ResponseParser:
    """Parses the responses of one connection; httptools calls the methods ``on_...``.

    Attributes:
        earlier: The responses before the last, if several are expected.
    """

    def __init__(self) -> None:
        self.earlier: list[Response] = []
        self._llhttp = httptools.HttpResponseParser(self)
        self._framing = b""
        self.begin()

    def begin(self, expected: int = 1, most: int = BODY_BYTES) -> None:
        """Expect the response to a new request, or to several that are sent together.

        ``most`` is the maximum of bytes of a body.
        """
        self._expected = expected
        self._most = most
        if self.earlier:
            self.earlier = []
        self._received = self._body_bytes = 0
        self._problem = ""
        self._is_complete = self._is_followed = self._keeps_alive = False
        self._begin_message()

    def feed(self, data: bytes) -> Response | None:
        """Parse bytes as they arrive; return the last expected response when it is complete.

        A response that ends the connection is the last one, even if more were expected.

        Raises:
            ValueError: The bytes are not HTTP/1.1, contradict themselves, or exceed a bound.
        """
        self._received += len(data)
        try:
            self._llhttp.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as exc:
            if not self._is_complete:
                raise ValueError(self._problem or str(exc)) from exc
            self._is_followed = True
        if self._received - self._body_bytes > FRAMING_BYTES * self._expected:
            raise ValueError(f"it has more than {FRAMING_BYTES} bytes besides its body")
        if self._body_bytes > self._most:
            raise ValueError(f"its body has more than {self._most} bytes")
        if self._problem:
            raise ValueError(self._problem)
        return (
            self._response(is_last=self._is_followed or not self._keeps_alive) if self._is_complete else None
        )

    def end(self) -> Response | None:
        """Handle the server's close; returns the response if the close ends it."""
        if self._is_complete or (self._is_final and not self._framing):
            return self._response(is_last=True)
        return None

    def on_message_begin(self) -> None:
        """Begin a message at the first byte of its status line."""
        if self._is_complete:
            self._is_followed = True
        else:
            self._begin_message()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Check a header or a trailer."""
        if self._is_complete or len(name) not in (14, 17):
            return
        name = name.lower()
        if name == b"content-length":
            if value.isdigit() and int(value[:20]) > self._most:
                self._problem = f"its body has more than {self._most} bytes: {value[:80]!r}"
        elif name != b"transfer-encoding":
            return
        elif value.lower() != b"chunked":
            self._problem = f"its transfer encoding is {value[:80]!r}"
        if self._framing:
            self._problem = f"it says twice how long it is: {self._framing.decode()} and {name.decode()}"
        self._framing = name

    def on_headers_complete(self) -> None:
        """Check the headers at the empty line after them."""
        if self._is_complete:
            return
        self._status = self._llhttp.get_status_code()
        version = self._llhttp.get_http_version()
        if version not in ("1.1", "1.0"):
            self._problem = f"its version is HTTP/{version}"
        elif version == "1.0" and self._framing == b"transfer-encoding":
            self._problem = "it has chunks in HTTP/1.0"
        elif self._status < 200 and (self._framing or self._status in (0, 101)):
            self._problem = f"it begins with status {self._status}, which was not asked for"
        elif self._status >= 200:
            self._is_final = True
        if self._problem:
            raise ValueError(self._problem)

    def on_body(self, part: bytes) -> None:
        """Append bytes of the body."""
        if not self._is_complete:
            self._body_bytes += len(part)
            self._parts.append(part)

    def on_message_complete(self) -> None:
        """End a message."""
        if self._is_final and not self._is_complete:
            self._keeps_alive = self._llhttp.should_keep_alive()
            if self._keeps_alive and len(self.earlier) + 1 < self._expected:
                self.earlier.append(self._response(is_last=False))
                self._is_final = False
            else:
                self._is_complete = True

    def _begin_message(self) -> None:
        self._status = 0
        self._framing = b""
        self._is_final = False
        self._parts: list[bytes] = []

    def _response(self, *, is_last: bool) -> Response:
        return Response(self._status, b"".join(self._parts), is_last)
