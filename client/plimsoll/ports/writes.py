"""The outcome of a write to the API server."""

from enum import StrEnum

from msgspec import Struct

#: Seconds after a response of outcome UNKNOWN in which the write may still take effect: the server may have
#: given up waiting for etcd, and etcd writes all the same. After this it is taken not to have happened.
LATE_EFFECT_S = 5.0


class WriteOutcome(StrEnum):
    """The kinds of outcomes of a write to the API server."""

    DONE = "done"
    CONFLICT = "conflict"  #: another client wrote first, or the object was replaced
    GONE = "gone"  #: the object does not exist any more
    BLOCKED = "blocked"  #: a PodDisruptionBudget rejects it
    BUSY = "busy"  #: too many requests; later
    DEFERRED = "deferred"  #: not now: another component carries it out in its own time
    REFUSED = "refused"  #: invalid, or not allowed: a retry is useless
    UNKNOWN = "unknown"  #: no usable response; the write may have happened
    FENCED = "fenced"  #: not sent: this process does not lead


class WriteResult(Struct, frozen=True):
    """The outcome of one write.

    Attributes:
        message: The server's message, empty when done.
        budget: The PodDisruptionBudget that blocked it, as ``namespace/name``.
        retry_after_s: Seconds after which the server allows a retry; 0 when it does not say.
        uid: The uid of the object as stored; empty if the writer does not say it.
        version: Its resourceVersion, likewise.
    """

    verdict: WriteOutcome
    message: str = ""
    budget: str = ""
    retry_after_s: float = 0.0
    uid: str = ""
    version: str = ""

    @property
    def is_done(self) -> bool:
        """Whether the write happened."""
        return self.verdict is WriteOutcome.DONE

    @property
    def is_failure(self) -> bool:
        """Whether the write was sent and, as far as is known, did not happen; a standby sends nothing."""
        return self.verdict not in (WriteOutcome.DONE, WriteOutcome.FENCED)

    @property
    def status(self) -> int:
        """The HTTP status of such an outcome, 0 for none."""
        return _STATUSES.get(self.verdict, 0)


#: The write happened.
DONE = WriteResult(WriteOutcome.DONE)

_STATUSES = {
    WriteOutcome.GONE: 404,
    WriteOutcome.CONFLICT: 409,
    WriteOutcome.BUSY: 429,
    WriteOutcome.DEFERRED: 429,
    WriteOutcome.REFUSED: 403,
}
