"""Decides whether this candidate leads: a state machine without I/O, clock or randomness.

The shell (:mod:`plimsoll.leadership.leader`) passes in one event, carries out the returned instruction, and
reports the result as the next event::

    Due ──▶ Read ──LeaseFound──▶ WriteLease ──Stored──▶ Rest   the lease is free, or ours: claim or renew it
              ▲         └────────────────────────────▶ Rest   another candidate's lease, not yet expired
    Due ──▶ WriteLease ──Failed──┘                             a leader renews without reading first
    LeaseFound ──▶ Rest, until it is ready                     a candidate that is not ready only observes
    any event after ``held_until`` ──────────▶ Resign

Time is this machine's own: a lease has expired when *we* saw no change of it for its duration. Times that
other machines wrote into the lease are never compared with our clock.

Source: client-go v1.36, ``tools/leaderelection/leaderelection.go``. It differs for safety or speed:

* a leader counts its deadline from when the last successful renewal was *sent*, not from its response or from
  the first failed renewal;
* any new version of the lease counts as a sign of life;
* a candidate reads the lease again as soon as it expires, instead of after the retry period;
* a leader that finds another holder in the lease resigns;
* a candidate that saw a live holder waits for it even if another client deleted, emptied or overwrote the
  lease; so does one that had not read the lease for a while, and one that first finds it so although others
  have led.

A leader that ends writes the lease as released, as in client-go; then no candidate waits.
"""

import math

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.ports.leases import Lease

#: Maximum extra wait of a candidate, as a factor of the retry period; it keeps candidates out of step.
JITTER_FACTOR = 1.2

#: The duration of a released lease, in seconds.
RELEASED_S = 1

#: The maximum of a lease's transitions (an int32); the count then restarts.
TRANSITIONS_AT_MOST = 2**31 - 1

#: The version of a lease that does not exist.
ABSENT = ""


class Terms(Struct, frozen=True):
    """The times of an election in seconds, with client-go's names and defaults.

    Attributes:
        lease_duration_s: How long others wait after the last sign of life; whole seconds.
        renew_deadline_s: How long a leader leads after the last renewal.
        retry_period_s: Pause between two attempts.
    """

    lease_duration_s: int = 15
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    @property
    def request_s(self) -> float:
        """Timeout of one request: never the whole deadline, as in client-go."""
        return max(1.0, self.renew_deadline_s / 2)

    @property
    def margin_s(self) -> float:
        """Seconds from a leader's last write to the first write of the next leader."""
        return self.lease_duration_s - self.renew_deadline_s


class Now(Struct, frozen=True):
    """A moment: seconds that never go back, seconds since the epoch, and a random number in 0..1."""

    monotonic: float
    wall: float
    fraction: float = 0.0


class Due(Struct, frozen=True):
    """The rest has ended."""


class LeaseFound(Struct, frozen=True):
    """A Read returned the lease, or None because it does not exist."""

    lease: Lease | None


class Stored(Struct, frozen=True):
    """A WriteLease succeeded; ``sent`` is the monotonic time before the request was sent."""

    lease: Lease
    sent: float


class Failed(Struct, frozen=True):
    """A Read or WriteLease failed or got no response; a write may have happened, or may still happen."""


class Rest(Struct, frozen=True):
    """Wait until this monotonic time, then report Due."""

    until: float


class Read(Struct, frozen=True):
    """Read the lease."""


class WriteLease(Struct, frozen=True):
    """Create the lease (no version), or replace exactly the version that it names."""

    lease: Lease


class Resign(Struct, frozen=True):
    """The lease could not be renewed in time: stop leading for the rest of this process."""


Event = Due | LeaseFound | Stored | Failed
Instruction = Rest | Read | WriteLease | Resign


class Election:
    """One candidate of the election.

    Attributes:
        identity: Differs from every other candidate's, and from every earlier process's.
        held_until: The monotonic time until which we certainly lead; -inf before.
        led_from: The monotonic time since which no other process has led; inf before we lead. Lists that
            begin
            later are complete.
        stands: Whether it may claim the lease; until then it only observes the holder.
        was_led: Whether another process may have led before this one began. If so, a lease that is missing or
            empty may have been deleted or emptied without its last holder noticing yet.
    """

    def __init__(self, identity: str, terms: Terms, *, stands: bool = True) -> None:
        self.identity = identity
        self.terms = terms
        self.held_until = -math.inf
        self.led_from = math.inf
        self.stands = stands
        self.was_led = False
        #: version of a released lease, ABSENT for one that is missing or was emptied, and since when
        self._free: tuple[str, float] | None = None
        self._observed: Lease | None = None
        self._observed_at = -math.inf
        #: until when the holder of a lease that was taken or deleted without its knowledge may still write
        self._ousted_until = -math.inf
        self._has_seen_holder = False
        self._read_at = -math.inf  #: when the lease was last read or written
        self._has_led = False
        self._writes = False  #: whether the last instruction was to write
        self._reads_again = False  #: whether a failed write is followed by an immediate read

    @property
    def holder(self) -> str:
        """The last observed holder of the lease, "" when it is free or was not read yet."""
        return self._observed.holder if self._observed else ""

    def is_leading(self, monotonic: float) -> bool:
        """Whether the lease is certainly ours."""
        return monotonic < self.held_until

    def handle(self, event: Event, now: Now) -> Instruction:
        """Process an event; returns the next instruction."""
        instruction = self._handle(event, now)
        if isinstance(event, LeaseFound | Stored):
            self._read_at = now.monotonic
        self._writes = isinstance(instruction, WriteLease)
        if self._has_led and not self.is_leading(now.monotonic):
            return Resign()
        return instruction

    def released(self, now: Now) -> Lease | None:
        """The lease as a leader releases it after its last write; None when it is not ours."""
        if not self.is_leading(now.monotonic) or self._observed is None:
            return None
        return replace(self._observed, holder="", duration_s=RELEASED_S, acquired=now.wall, renewed=now.wall)

    def _handle(self, event: Event, now: Now) -> Instruction:
        match event:
            case Due():
                leads = self.is_leading(now.monotonic)
                self._reads_again = leads
                if leads and self._observed is not None:
                    return WriteLease(self._claim(self._observed, now))
                return Read()
            case LeaseFound(lease):
                return self._found(lease, now)
            case Stored(lease, sent):
                self._observe(lease, now)
                if not self._has_led:
                    # Between two reads that find no lease, another candidate may have created one and led,
                    # and the holder of one that was emptied leads on until it notices: only an unchanged
                    # version of a released lease, seen twice, excludes both.
                    version, since = self._free or (ABSENT, now.monotonic)
                    self.led_from = now.monotonic if version == ABSENT else since
                self.held_until = sent + self.terms.renew_deadline_s
                self._has_led = True
            case Failed() if self._writes and self._reads_again:
                # Another client may have written it, or the response to our write was lost.
                self._reads_again = False
                return Read()
        return self._rest(now)

    def _found(self, lease: Lease | None, now: Now) -> Instruction:
        was_held = self._free is None
        self._note_free(lease, now)
        if lease is None:
            if was_held:
                self._note_ousted(now)
            if now.monotonic < (noticed := self._noticed_at(now)):
                return Rest(min(self._rest(now).until, noticed))
            return WriteLease(self._claim(None, now)) if self.stands else self._rest(now)
        if self._observed is None or self._observed.version != lease.version:
            self._observe(lease, now)
        is_ours = lease.holder == self.identity
        if lease.holder and not is_ours:
            self.held_until = -math.inf  # another candidate took it from us and may write now
        if lease.holder and not is_ours and now.monotonic < self._expiry():
            return self._rest(now)
        if not self.stands:
            return self._rest(now)
        if not is_ours and now.monotonic < (noticed := self._noticed_at(now)):
            return Rest(min(self._rest(now).until, noticed))
        return WriteLease(self._claim(lease, now))

    def _note_free(self, lease: Lease | None, now: Now) -> None:
        """Remember since when the lease has been free; its last holder's last write was before that."""
        if lease is not None and lease.holder:
            self._free = None
            return
        version = lease.version if lease is not None and _is_released(lease) else ABSENT
        if self._free is None or self._free[0] != version:
            self._free = (version, now.monotonic)

    def _observe(self, lease: Lease, now: Now) -> None:
        self._has_seen_holder |= bool(lease.holder)
        if lease.holder != self.holder and not _is_released(lease):
            self._note_ousted(now)
        self._observed, self._observed_at = lease, now.monotonic

    def _note_ousted(self, now: Now) -> None:
        """Note that another client deleted or overwrote the lease: its holder may write until it notices.

        It notices when its time is up, by our own terms at the latest, whatever was written into the lease.
        It may have renewed the lease since we last read it, if that was long ago.
        """
        if self.holder not in ("", self.identity):
            known_until = min(self._expiry(), self._observed_at + self.terms.lease_duration_s)
            if now.monotonic - self._read_at > self.terms.margin_s and self._read_at < known_until:
                known_until = now.monotonic + self.terms.lease_duration_s
            self._ousted_until = max(self._ousted_until, known_until)

    def _noticed_at(self, now: Now) -> float:
        """When earlier holders must have noticed a deleted or overwritten lease; -inf while we lead."""
        if self.is_leading(now.monotonic):
            return -math.inf
        may_be_unseen = self.was_led and not self._has_seen_holder
        if may_be_unseen and self._free is not None and self._free[0] == ABSENT:
            return max(self._ousted_until, self._free[1] + self.terms.lease_duration_s)
        return self._ousted_until

    def _expiry(self) -> float:
        """When the observed lease may be taken from its holder."""
        return self._observed_at + (self._observed.duration_s if self._observed else 0)

    def _claim(self, lease: Lease | None, now: Now) -> Lease:
        """The lease with us as its holder: renewed, taken over, or new."""
        ours = Lease(self.identity, self.terms.lease_duration_s, now.wall, now.wall)
        if lease is None:
            return ours
        ours = replace(ours, version=lease.version, metadata=lease.metadata)
        if lease.holder == self.identity:
            return replace(ours, acquired=lease.acquired, transitions=lease.transitions)
        transitions = 0 if lease.transitions >= TRANSITIONS_AT_MOST else lease.transitions + 1
        return replace(ours, transitions=transitions)

    def _rest(self, now: Now) -> Rest:
        if self._has_led:
            return Rest(min(now.monotonic + self.terms.retry_period_s, self.held_until))
        turn = now.monotonic + self.terms.retry_period_s * (1 + JITTER_FACTOR * now.fraction)
        expiry = self._expiry()
        return Rest(min(turn, expiry) if self.holder and expiry > now.monotonic else turn)


def _is_released(lease: Lease) -> bool:
    """Whether its holder gave it away, rather than that another client emptied it."""
    return not lease.holder and lease.duration_s == RELEASED_S
