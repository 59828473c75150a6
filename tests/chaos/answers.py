"""Answers in the API server's stead, and the versions in those of its own."""

from __future__ import annotations

import json

from chaos.faults import ChaosKind as K
from roadstead.values.status_errors import StatusError

#: Statuses that are answered without passing a request on.
STATUSES = {
    K.CONFLICT: (409, "Conflict"),
    K.BUSY: (429, "TooManyRequests"),
    K.BUSY_WITH_DELAY: (429, "TooManyRequests"),
    K.INTERNAL_ERROR: (500, "InternalError"),
    K.BAD_GATEWAY: (502, "BadGateway"),
    K.UNAVAILABLE: (503, "ServiceUnavailable"),
    K.TIMEOUT: (504, "Timeout"),
    K.UNAUTHORIZED: (401, "Unauthorized"),
    K.DISK_FULL: (500, ""),
}

#: The words of an API server whose etcd takes no writes any more.
NO_SPACE = "etcdserver: mvcc: database space exceeded"


def refusal(fault: K) -> tuple[bytes, bytes]:
    """Head and body of an answer in the API server's stead."""
    code, reason = STATUSES[fault]
    if fault is K.BAD_GATEWAY:
        content, kind = b"<html><body>502 Bad Gateway</body></html>", "text/html"
    else:
        content, kind = json.dumps(status_object(code, reason)).encode(), "application/json"
    lines = [f"HTTP/1.1 {code} {reason}", f"Content-Type: {kind}", f"Content-Length: {len(content)}"]
    if fault is K.BUSY_WITH_DELAY:
        lines.append("Retry-After: 1")
    return ("\r\n".join(lines) + "\r\n\r\n").encode(), content


def status_object(code: int, reason: str) -> dict[str, object]:
    """A Status as an API server words it."""
    return StatusError(code, reason, f"chaos: {reason}" if reason else NO_SPACE).status


def version_in(content: bytes) -> str:
    """The resourceVersion of the object in an answer, "" without one."""
    try:
        found = json.loads(content)
    except ValueError:
        return ""
    meta = found.get("metadata") if isinstance(found, dict) else None
    version = meta.get("resourceVersion") if isinstance(meta, dict) else None
    return str(version or "")
