"""Answers in all shapes, whole and in pieces: read alike, within bounds, never against their own framing."""

import itertools
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.kube.session.response_parser import BODY_BYTES, FRAMING_BYTES, ResponseParser

OK = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

FIELDS = st.tuples(
    st.sampled_from([b"Date", b"Audit-Id", b"X-Content-Length", b"Content-Type", b"X-Chunked"]),
    st.text('abc 0123;,="\t', max_size=12).map(lambda text: text.strip().encode()),
)
HEADERS = st.lists(FIELDS, max_size=4).map(
    lambda fields: b"".join(name + b": " + value + b"\r\n" for name, value in fields)
)
BODIES = st.binary(max_size=40)
EXTENSIONS = st.sampled_from([b"", b"", b";a", b";a=b", b';a="b c"'])


@st.composite
def lengths(draw: Callable[..., Any]) -> tuple[bytes, ...]:
    """A head and a body of so many bytes."""
    body = draw(BODIES)
    return b"Content-Length: %d\r\n%s\r\n" % (len(body), draw(HEADERS)) + body, body


@st.composite
def chunks(draw: Callable[..., Any]) -> tuple[bytes, ...]:
    """A head and a body of chunks, with extensions and trailers."""
    parts = draw(st.lists(BODIES.filter(bool), max_size=4))
    sizes = (b"%x", b"%X", b"0%x")
    framed = [
        draw(st.sampled_from(sizes)) % len(each) + draw(EXTENSIONS) + b"\r\n" + each + b"\r\n"
        for each in parts
    ]
    last = b"0" + draw(EXTENSIONS) + b"\r\n" + draw(HEADERS) + b"\r\n"
    head = draw(HEADERS) + b"transfer-encoding: Chunked\r\n\r\n"
    return head + b"".join(framed) + last, b"".join(parts)


@st.composite
def answers(draw: Callable[..., Any]) -> tuple[bytes, int, bytes]:
    """The bytes of an answer, its status and its body."""
    announced = b"".join(
        b"HTTP/1.1 %d Wait\r\n%s\r\n" % (status, draw(HEADERS))
        for status in draw(st.lists(st.sampled_from([100, 102, 103]), max_size=2))
    )
    status = draw(st.sampled_from([200, 201, 404, 409, 500]))
    rest, body = draw(st.one_of(lengths(), chunks()))
    return announced + b"HTTP/1.1 %d Reason\r\n" % status + rest, status, body


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    """The same bytes, cut at some places."""
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[begin:end] for begin, end in itertools.pairwise(places)]


def read(pieces: list[bytes] | Iterator[Any], parser: ResponseParser | None = None) -> Any:
    """What an answer in pieces is taken for: status and body, None when more is expected, or "refused"."""
    parser = parser or ResponseParser()
    for piece in pieces:
        try:
            response = parser.feed(piece)
        except ValueError:
            return "refused"
        if response is not None:
            return response.status, response.content
    return None


CUTS = st.lists(st.integers(0, 2**16), max_size=12)


@given(answers(), CUTS)
def test_an_answer_is_read_however_it_is_cut(answer: tuple[bytes, int, bytes], cuts: list[int]) -> None:
    """Once complete, and not before."""
    data, status, body = answer

    assert read(pieces_of(data, cuts)) == (status, body)
    assert read(pieces_of(data[:-1], cuts)) is None
    assert read(data[at : at + 1] for at in range(len(data))) == (status, body)


@given(st.lists(st.tuples(answers(), CUTS), min_size=2, max_size=4))
def test_one_parser_reads_one_answer_after_another(
    exchanges: list[tuple[tuple[bytes, int, bytes], list[int]]],
) -> None:
    """Nothing of the first reaches the second."""
    parser = ResponseParser()
    for (data, status, body), cuts in exchanges:
        parser.begin()

        assert read(pieces_of(data, cuts), parser) == (status, body)


@given(st.lists(answers(), min_size=1, max_size=4), CUTS)
def test_answers_to_requests_sent_together_are_read_in_order(
    exchanges: list[tuple[bytes, int, bytes]], cuts: list[int]
) -> None:
    """All of them, however their bytes are cut, and not before the last is there."""
    parser, data = ResponseParser(), b"".join(data for data, _, _ in exchanges)
    parser.begin(len(exchanges))

    assert read(pieces_of(data[:-1], cuts), parser) is None
    last = read([data[-1:]], parser)

    assert [*((each.status, each.content) for each in parser.earlier), last] == [
        (status, body) for _, status, body in exchanges
    ]


FRAMINGS = (
    *(b"Content-Length: 5", b"Content-Length: +5", b"Content-Length: 0x5", b"Content-Length: 5, 5"),
    *(b"Content-Length: 6", b"content-length:05", b"Content-Length : 5", b"Content-Length: 5\n"),
    *(
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: gzip, chunked",
    ),
    *(b"Transfer-Encoding:\x0bchunked", b"Transfer-Encoding: identity", b"Content-Length: 1_0", b" chunked"),
)
SIZES = (
    b"5",
    b"+5",
    b"0x5",
    b"-5",
    b" 5",
    b"5 ",
    b"5_0",
    b"\xef\xbc\x95",
    b"",
    b"5;x",
    b"5\n",
    b"05",
    b"0" * 40 + b"5",
)
SPLICES = st.sampled_from(
    [
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b":",
        b";",
        b"\x00",
        b"0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"\r\n\r\n",
        OK,
    ]
    + [each + b"\r\n" for each in FRAMINGS]
    + [each + b"\r\nhello\r\n" for each in SIZES]
)
EDITS = st.lists(
    st.tuples(st.integers(0, 2**16), st.integers(0, 6), SPLICES | st.binary(max_size=3)),
    min_size=1,
    max_size=4,
)


@st.composite
def broken(draw: Callable[..., Any]) -> Any:
    """An answer in which some bytes have been replaced."""
    data, _, _ = draw(answers())
    for place, length, splice in draw(EDITS):
        at = place % (len(data) + 1)
        data = data[:at] + splice + data[at + length :]
    return data


@st.composite
def contradictory(draw: Callable[..., Any]) -> Any:
    """An answer of hand-picked framing, most of which no client may accept."""
    named = draw(st.lists(st.sampled_from(FRAMINGS), min_size=1, max_size=3))
    size, end = draw(st.sampled_from(SIZES)), draw(st.sampled_from([b"\r\n", b"\r\n", b"\n", b"\r"]))
    body = draw(st.sampled_from([b"hello", size + end + b"hello\r\n0\r\n\r\n"]))
    version = draw(st.sampled_from([b"1.1", b"1.1", b"1.0", b"2.0", b"0.9", b"1.2"]))
    return b"HTTP/" + version + b" 200 OK\r\n" + b"\r\n".join(named) + b"\r\n\r\n" + body


TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
LINE = rb"[\t\x20-\x7e\x80-\xff]*"
HEAD = re.compile(
    rb"[\r\n]*HTTP/(1\.[01]) (\d{3})(?: [^\r\n]*)?\r\n((?:" + TOKEN + rb":" + LINE + rb"\r\n)*)\r\n"
)
CHUNK = re.compile(rb"([0-9A-Fa-f]+)(?:;" + LINE + rb")?\r\n")
TRAILERS = re.compile(rb"(?:" + TOKEN + rb":" + LINE + rb"\r\n)*\r\n")


def strictly(data: bytes) -> tuple[int, bytes] | None:  # noqa: C901, PLR0911, PLR0912 - a second parser, written as plainly as possible
    """Status and body by the letter of RFC 9112, None for whatever is not to the letter or not complete.

    Two liberties of llhttp's are harmless: empty lines before a status line, and any characters in a reason.
    """
    at = 0
    while True:
        head = HEAD.match(data, at)
        if head is None:
            return None
        at, status = head.end(), int(head[2])
        fields = [line.partition(b":") for line in head[3].split(b"\r\n")[:-1]]
        framing = [
            (name.lower(), value.strip(b" \t").lower())
            for name, _, value in fields
            if name.lower() in {b"content-length", b"transfer-encoding"}
        ]
        if status >= 200:
            break
        if framing or status == 101:
            return None
    if len(framing) > 1:
        return None
    if status in {204, 304}:
        return status, b""
    if not framing:
        return None  # until the connection ends
    ((name, value),) = framing
    if name == b"content-length":
        if not re.fullmatch(rb"[0-9]+", value) or len(data) < at + int(value):
            return None
        return status, data[at : at + int(value)]
    if value != b"chunked" or head[1] == b"1.0":
        return None
    body = b""
    while True:
        chunk = CHUNK.match(data, at)
        if chunk is None:
            return None
        at, size = chunk.end(), int(chunk[1], 16)
        if not size:
            return (status, body) if TRAILERS.match(data, at) else None
        body += data[at : at + size]
        at += size + 2
        if data[at - 2 : at] != b"\r\n":
            return None


@given(st.one_of(broken(), contradictory()), CUTS)
def test_what_is_accepted_is_what_the_letter_of_the_protocol_says(data: bytes, cuts: list[int]) -> None:
    """A response whose length can be read in two ways is refused, and cuts change nothing."""
    found = read([data])

    assert found in (None, "refused", strictly(data))
    assert read(pieces_of(data, cuts)) == found


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", "Content-Length"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "Content-Length",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding",
        ),
        (CHUNKED.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "twice"),
        (CHUNKED + b"+5\r\nhello\r\n0\r\n\r\n", "chunk size"),
        (CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n", "chunk size"),
        (CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n", "chunk size"),
        (CHUNKED + b"5_0\r\nhello\r\n0\r\n\r\n", "chunk size"),
        (CHUNKED + b"5\nhello\r\n0\r\n\r\n", "chunk size"),
        (CHUNKED + b"5\r\nhello0\r\n\r\n", "chunk"),
        (CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n", "HTTP/1.0"),
        (CHUNKED.replace(b"chunked", b"gzip, chunked") + b"0\r\n\r\n", "encoding is b'gzip"),
        (b"HTTP/1.1 101 Switching\r\n\r\n" + OK, "101"),
        (b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "101"),
        (b"HTTP/1.1 100 Continue\r\nContent-Length: 2\r\n\r\n{}" + OK, "100"),
        (OK.replace(b"1.1", b"2.0"), "2.0"),
        (OK.replace(b"\r\n", b"\n"), "CR"),
        (OK.replace(b": 2", b": %d" % (BODY_BYTES + 1)), "more than"),
        (OK.replace(b"201", b"2010"), "status"),
    ],
)
def test_framing_that_is_loose_or_contradicts_itself_is_refused(answer: bytes, says: str) -> None:
    """With the reason, for the log."""
    with pytest.raises(ValueError, match=re.compile(re.escape(says), re.IGNORECASE)):
        ResponseParser().feed(answer)


#: Answers without end: how each begins, and what it repeats.
ENDLESS = {
    "nothing": (b"", b"\r\n"),
    "interim answers": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"),
    "a reason": (b"HTTP/1.1 200 ", b"OK "),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
    "the value of a header": (b"HTTP/1.1 200 OK\r\nA: ", b"bcd"),
    "the name of a header": (b"HTTP/1.1 200 OK\r\n", b"bcd"),
    "zeros of a size": (CHUNKED, b"0"),
    "an extension": (CHUNKED + b"5;", b"a=b;"),
    "tiny chunks with extensions": (CHUNKED, b"1;abcdefgh\r\nx\r\n"),
    "trailers": (CHUNKED + b"0\r\n", b"A: b\r\n"),
    "the value of a trailer": (CHUNKED + b"0\r\nA: ", b"bcd"),
}
ENDLESS_BODIES = {
    "chunks": (CHUNKED, b"8000\r\n" + b"x" * 0x8000 + b"\r\n"),
    "a body until the connection ends": (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 0x8000),
}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("piece", [1, 7, 1460, 2**18])
def test_what_is_no_body_is_bounded_wherever_it_comes(name: str, piece: int) -> None:
    """One account for all of it, in pieces of any size."""
    begin, repeated = ENDLESS[name]
    parser, fed = ResponseParser(), 0
    data = begin + repeated * (4 * FRAMING_BYTES // len(repeated))

    def feed() -> None:
        nonlocal fed
        for at in range(0, len(data), piece):
            fed += len(data[at : at + piece])
            assert parser.feed(data[at : at + piece]) is None

    with pytest.raises(ValueError, match=r"besides its body|Chunk size overflow"):
        feed()
    assert fed <= 2 * FRAMING_BYTES + piece


@pytest.mark.parametrize("name", ENDLESS_BODIES)
def test_a_body_is_bounded(name: str) -> None:
    """Announced or not."""
    begin, repeated = ENDLESS_BODIES[name]
    parser, fed = ResponseParser(), 0
    parser.feed(begin)

    def feed() -> None:
        nonlocal fed
        while fed < 2 * BODY_BYTES:
            fed += len(repeated)
            assert parser.feed(repeated) is None

    with pytest.raises(ValueError, match="its body has more than 16777216 bytes"):
        feed()
    assert fed <= BODY_BYTES + FRAMING_BYTES + len(repeated)


def test_what_is_no_body_may_be_as_long_as_the_bound() -> None:
    """The last byte that is allowed is allowed; one more is not."""
    padding = b"X-Padding: %s\r\n\r\n"
    head = OK.removesuffix(b"\r\n{}") + padding
    room = FRAMING_BYTES - len(head % b"")

    assert read([head % (b"x" * room) + b"{}"]) == (201, b"{}")
    assert read([head % (b"x" * (room + 1)) + b"{}"]) == "refused"


def test_the_largest_objects_fit() -> None:
    """Three mebibytes, in the chunks of two kibibytes that Go's server makes of small writes."""
    body = b"x" * 3 * 2**20
    framed = b"".join(b"800\r\n" + body[at : at + 2048] + b"\r\n" for at in range(0, len(body), 2048))

    assert read([CHUNKED + framed + b"0\r\n\r\n"]) == (200, body)


def steps(pieces: list[bytes]) -> int:
    """Calls that it takes to read them, of Python's functions and of C's."""
    count = 0

    def counted(_frame: Any, event: Any, _arg: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    parser = ResponseParser()
    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        for piece in pieces:
            parser.feed(piece)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    "repeated",
    [
        pytest.param([b"400\r\n" + b"x" * 1024 + b"\r\n"], id="a chunk in a piece"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n"], id="an interim answer in a piece"),
        pytest.param([b"4", b"\r", b"\n", b"a", b"b", b"c", b"d", b"\r", b"\n"], id="a byte in a piece"),
    ],
)
def test_work_grows_with_the_bytes_and_not_with_their_square(repeated: list[bytes]) -> None:
    """Ten times as many pieces are ten times the work."""
    begin = [] if b"HTTP" in repeated[0] else [CHUNKED]

    once, tenfold = (steps(begin + repeated * count) for count in (50, 500))

    assert tenfold <= 11 * once


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    """And one that has a length does not."""
    parser = ResponseParser()
    assert parser.feed(b"HTTP/1.1 200 OK\r\n\r\n{}") is None
    assert parser.end().content == b"{}"

    for cut_short in (OK[:-1], CHUNKED + b"2\r\n{}", OK[:20], b"HTTP/1.1 100 Continue\r\n\r\n"):
        parser = ResponseParser()
        assert parser.feed(cut_short) is None
        assert parser.end() is None


@pytest.mark.parametrize("extra", [b"HTTP/1.1 200 OK\r\n", OK, b"x", b"\x00\x00"])
def test_bytes_after_the_answer_end_the_connection(extra: bytes) -> None:
    """They answer no request."""
    response = ResponseParser().feed(OK + extra)

    assert (response.content, response.is_last) == (b"{}", True)
