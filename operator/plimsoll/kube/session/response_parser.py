"""Reads one HTTP/1.1 answer after another from the bytes of a connection, within fixed bounds.

llhttp, through httptools, knows the grammar; this module refuses what llhttp accepts and a client must not:
framing that is given twice, other encodings than ``chunked``, and answers without end (docs/adr/0016). Each
byte goes through the parser once, so the work grows with the bytes and not with the square of their pieces.
"""

import httptools
import msgspec

#: Bytes of one answer: of its body, and of all else: status lines, headers, interim answers (1xx), sizes and
#: extensions of chunks, trailers. The API server accepts objects of up to 3 MiB.
BODY_BYTES, FRAMING_BYTES = 2**24, 2**16


class Response(msgspec.Struct, frozen=True):
    """An answer.

    Attributes:
        status: HTTP's.
        is_last: Whether the connection ends with it.
    """

    status: int
    content: bytes
    is_last: bool


class ResponseParser:
    """Parses the answers of one connection; the methods ``on_...`` are called by httptools.

    Attributes:
        earlier: Of several that are expected, those before the last.
    """

    def __init__(self) -> None:
        self.earlier: list[Response] = []
        self._llhttp = httptools.HttpResponseParser(self)
        self._framing = b""
        self.begin()

    def begin(self, expected: int = 1) -> None:
        """Expect the answer to a new request, or to several that are sent together."""
        self._expected = expected
        if self.earlier:
            self.earlier = []
        self._received = self._body_bytes = 0
        self._problem = ""
        self._is_complete = self._is_followed = self._keeps_alive = False
        self._begin_message()

    def feed(self, data: bytes) -> Response | None:
        """Take bytes as they arrive; return the answer when it is complete, of several the last.

        It is the last, too, if the connection ends with it before the others have come.

        Raises:
            ValueError: It is no HTTP/1.1, contradicts itself, or is too long.
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
        if self._body_bytes > BODY_BYTES:
            raise ValueError(f"its body has more than {BODY_BYTES} bytes")
        if self._problem:
            raise ValueError(self._problem)
        return (
            self._response(is_last=self._is_followed or not self._keeps_alive) if self._is_complete else None
        )

    def end(self) -> Response | None:
        """The server has closed the connection: return the answer if that is how it ends."""
        if self._is_complete or (self._is_final and not self._framing):
            return self._response(is_last=True)
        return None

    def on_message_begin(self) -> None:
        """The first byte of a status line."""
        if self._is_complete:
            self._is_followed = True
        else:
            self._begin_message()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer."""
        if self._is_complete or len(name) not in (14, 17):
            return
        name = name.lower()
        if name == b"content-length":
            if value.isdigit() and int(value[:20]) > BODY_BYTES:
                self._problem = f"its body has more than {BODY_BYTES} bytes: {value[:80]!r}"
        elif name != b"transfer-encoding":
            return
        elif value.lower() != b"chunked":
            self._problem = f"its transfer encoding is {value[:80]!r}"
        if self._framing:
            self._problem = f"it says twice how long it is: {self._framing.decode()} and {name.decode()}"
        self._framing = name

    def on_headers_complete(self) -> None:
        """The empty line after the headers."""
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
        """Bytes of the body."""
        if not self._is_complete:
            self._body_bytes += len(part)
            self._parts.append(part)

    def on_message_complete(self) -> None:
        """The end of a message."""
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
