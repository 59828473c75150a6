"""Cases are inputs that have broken a parser once, by target, each with what happened."""

from __future__ import annotations

from dataclasses import dataclass

DEEP = b"[" * 3000 + b"]" * 3000


@dataclass(frozen=True, slots=True)
class Case:
    """An input that is tried in each run of the test suite.

    Attributes:
        target: The name of the target.
        fault: What it did.
    """

    target: str
    data: bytes
    fault: str


def a_pod(*, metadata: bytes = b"", spec: bytes = b"") -> bytes:
    """A pod with more members, separated by commas before them."""
    return (
        b'{"metadata":{"name":"x","namespace":"far","uid":"x","resourceVersion":"1"%b},'
        b'"spec":{"nodeName":"n1"%b}}' % (metadata, spec)
    )


def a_line(document: bytes) -> bytes:
    """A line of a watch."""
    return b'{"type":"ADDED","object":%b}' % document


OURS = b',"apiVersion":"plimsoll.dev/v1alpha1"'
MANAGED = a_pod(metadata=b',"managedFields":[{"fieldsV1":%b}]' % DEEP)
RULE = a_pod(spec=b',"initContainers":[{"restartPolicyRules":[{"exitCodes":{"values":[%b]}}]}]' % (b"9" * 30))
LARGE = a_pod(spec=b',"containers":[{"resources":{"requests":{"cpu":18446744073709551616}}}]')
NO_TEXT = a_pod(metadata=b',"labels":{"a":"\xff"}')

CASES = (
    Case("selectors", b'{"a":%b}' % DEEP, "RecursionError from decode"),
    Case("objects", b"\x01" + MANAGED, "RecursionError from decode"),
    Case("objects", b"\x01" + NO_TEXT, "UnicodeDecodeError from decode"),
    Case("objects", b"\x001e400", "ValidationError of the library from decode"),
    Case("objects", b"\x00-1x", "DecodeError of the library from decode"),
    Case("list", MANAGED, "RecursionError ended the reflector: one pod kept all from being known"),
    Case("list", NO_TEXT, "UnicodeDecodeError ended the reflector"),
    Case("list", LARGE, "OverflowError ended the reflector"),
    Case("watch", a_line(MANAGED), "RecursionError ended the reflector"),
    Case("watch", a_line(NO_TEXT), "UnicodeDecodeError ended the reflector"),
    Case("watch", a_line(LARGE), "OverflowError ended the reflector"),
    Case("watch", a_line(RULE), "OverflowError ended the reflector, from a field of any type"),
    Case("watch", b'{"type":"ERROR","object":{"message":"\xff"}}', "UnicodeDecodeError ended the reflector"),
    Case(
        "watch",
        b'{"type":"ERROR","object":{"message":"%b"}}' % (b"x" * 9000),
        "a message of 9,000 characters",
    ),
    Case("page", b'{"a":%b}' % DEEP, "RecursionError ended the reflector"),
    Case("durations", b"0" * 1500, "the time grew with the cube of the length"),
    Case("selector-text", b"a" * 9000, "a message of 9,000 characters"),
    Case("schedules", b'{"%b":1}' % (b"x" * 9000), "a message of 9,000 characters"),
    Case("refusals", b"\x00", "JSONDecodeError from node_of"),
    Case("refusals", b'\x00{"spec":1}', "KeyError from node_of, AttributeError from the tainter"),
    Case("refusals", b'\x09{"details":{"causes":[1],"retryAfterSeconds":"x"}}', "AttributeError from evict"),
    Case("leases", b'\x00{"metadata":{"annotations":["a"]}}', "AttributeError from the lease store"),
    Case(
        "leases",
        b'\x00{"metadata":{},"spec":{"renewTime":"0001-01-01T00:00:00+23:00"}}',
        "OverflowError when another replica wrote its wish into the lease",
    ),
    Case("metrics", b'\x00{"items":7}', "TypeError from the meter"),
    Case("prometheus", b'{"a":%b}' % DEEP, "RecursionError from the query"),
    Case(
        "explain-requests",
        b"/explain/nodes/n\nAuthorization: Bearer \xff",
        "UnicodeEncodeError: status 500 and a traceback in the log",
    ),
    Case(
        "convert",
        b"kind: KubeSchedulerConfiguration\napiVersion: " + b"x" * 9000,
        "a message of 9,000 characters",
    ),
    Case("records", b'{"metadata":7}', "TypeError from the store"),
    Case("records", b'{"a":%b}' % (DEEP[:300] + DEEP[-300:]), "PydanticSerializationError from the store"),
    Case(
        "policies", b'{"a":%b}' % (DEEP[:300] + DEEP[-300:]), "PydanticSerializationError from the judgement"
    ),
    Case(
        "snapshots",
        b'[{"a":"\xaf","kind":"Eviction","metadata":{"name":"r","namespace":"b"}%b}]' % OURS,
        "JSONDecodeError",
    ),
    Case("manifests", b'{"kind":"%b","metadata":7}' % (b"x" * 9000), "a message of 9,000 characters"),
    Case("manifests", b'{"kind":"SchedulingPolicy","spec":{}%b}' % OURS, "KeyError from validate"),
    Case("selector-text", b"n>" + b"9" * 5000, "ValueError: Python converts no more than 4,300 digits"),
    Case("command-reads", b'\x00{"status":"s"}', "AttributeError from pause"),
    Case("command-reads", b'\x00{"items":[{}]}', "KeyError from pause"),
    Case("command-reads", b"\x00\xff", "UnicodeDecodeError from the review of a right"),
    Case(
        "list",
        b'{"metadata":{"":"c","namespace":"%b","uid":"c","":"5"},"spec":{"nodeName":"n","containers":['
        b'{"resources":{"requests":{"c":[""],"n":"MiMi"}}}]}}' % (b"x" * 4100),
        "a log line with a name of 4,100 characters",
    ),
    Case("extenders", b'{"":[{}],"error":" "}', "a refusal that says nothing"),
    Case("snapshots", b"*" + b"k" * 4100, "a message of 4,100 characters"),
    Case("snapshots", b"!" + b"k" * 4100, "a message of 4,100 characters"),
    Case("device-classes", b'{"metadata":{"name":"%b"}}' % (b"x" * 5000), "a message of 5,175 characters"),
    Case("device-expressions", b"\xaf\xc0" * 16, "a message of 5,721 characters"),
)
