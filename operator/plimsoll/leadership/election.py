"""Decides one candidate's part in the leader election: a state machine without I/O, clock or randomness.

Events go in, one instruction comes out; the shell (:mod:`plimsoll.leadership.leader`) carries it out and
reports what became of it::

    Due ──▶ Read ──LeaseFound──▶ WriteLease ──Stored──▶ Rest   the lease is free, or ours: claim or renew it
              ▲         └────────────────────────────▶ Rest   another candidate's lease, not yet expired
    Due ──▶ WriteLease ──Failed──┘                             a leader renews without reading first
    LeaseFound ──▶ Rest, until it is ready                     a candidate that is not ready only observes
    any event after ``held_until`` ──────────▶ Resign

Time is this machine's own: a lease has expired when *we* saw no change of it for its duration. What other
machines wrote into it about time is never compared with our clock.

Source: client-go v1.36, ``tools/leaderelection/leaderelection.go``. Differs, each for safety or speed: a
leader counts its deadline from the moment the last good renewal was *sent*, and not from its answer or from
the first renewal that failed; any new version of the lease counts as a sign of life; a candidate looks again
as soon as the lease expires instead of at its next turn; a leader that finds the lease to be another's
resigns; a candidate that saw a live holder waits for it even where the lease was deleted, emptied or
overwritten by somebody else. Leaders that end write it as released, as client-go does; then no candidate
waits.
"""

import math
from dataclasses import dataclass, replace

from plimsoll.ports.leases import Lease

#: A candidate waits up to so many times the retry period longer, so that candidates do not march in step.
JITTER_FACTOR = 1.2

#: What the duration of a released lease becomes, in seconds.
RELEASED_S = 1

#: The most transitions that a lease can name (an int32); counting begins again after them.
TRANSITIONS_AT_MOST = 2**31 - 1

#: In place of the version of a lease that does not exist.
ABSENT = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """The times of an election, in seconds; client-go's names and defaults.

    Attributes:
        lease_duration_s: How long others wait after the last sign of life; whole seconds.
        renew_deadline_s: How long a leader leads after the last renewal.
        retry_period_s: Between two attempts.
    """

    lease_duration_s: int = 15
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    @property
    def request_s(self) -> float:
        """What one request may take: never the whole deadline, as for client-go."""
        return max(1.0, self.renew_deadline_s / 2)

    @property
    def margin_s(self) -> float:
        """From a leader's last write to the first one of the next leader."""
        return self.lease_duration_s - self.renew_deadline_s


@dataclass(frozen=True, slots=True)
class Now:
    """A moment: seconds that never go back, seconds since the epoch, and a random number in 0..1."""

    monotonic: float
    wall: float
    fraction: float = 0.0


@dataclass(frozen=True, slots=True)
class Due:
    """The rest is over."""


@dataclass(frozen=True, slots=True)
class LeaseFound:
    """A Read was answered; None: there is no lease."""

    lease: Lease | None


@dataclass(frozen=True, slots=True)
class Stored:
    """A WriteLease was taken; ``sent`` is the monotonic time before the request was sent."""

    lease: Lease
    sent: float


@dataclass(frozen=True, slots=True)
class Failed:
    """A Read or a WriteLease was refused, or no answer came: it may have happened, or happen yet."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Wait until this monotonic time, then report Due."""

    until: float


@dataclass(frozen=True, slots=True)
class Read:
    """Ask for the lease."""


@dataclass(frozen=True, slots=True)
class WriteLease:
    """Create the lease (no version), or replace exactly the version that it names."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Resign:
    """The lease could not be renewed in time: lead no more, and do not come back."""


Event = Due | LeaseFound | Stored | Failed
Instruction = Rest | Read | WriteLease | Resign


class Election:
    """One candidate.

    Attributes:
        identity: Unlike every other candidate's, and every earlier process's.
        held_until: The monotonic time until which we lead for sure; -inf before.
        led_from: Since when no other process has led, a monotonic time; inf before we lead. What is listed
            later is complete.
        stands: Whether it may claim the lease; until then it observes who holds it.
        was_led: Whether another process may have led before this one began: then a lease that does not exist
            may have been deleted, and its last holder may not know that yet.
        has_looked: Whether it knows who holds the lease.
        patience_s: How long it leaves a lease that is free, or has expired, to others, until it leads.
        hurries_until: Until this monotonic time it looks ten times as often: it was promised the lease.
    """

    def __init__(self, identity: str, terms: Terms, *, stands: bool = True, is_shared: bool = False) -> None:
        self.identity = identity
        self.terms = terms
        self.held_until = -math.inf
        self.led_from = math.inf
        self.stands = stands
        self.was_led = False
        self.has_looked = False
        self.patience_s = 0.0
        self.hurries_until = -math.inf
        self._is_shared = is_shared  #: other candidates have the same identity, and renew the lease as well
        self._free: tuple[str, float] | None = None  #: version of a lease without holder, and since when
        self._observed: Lease | None = None
        self._observed_at = -math.inf
        #: How long a holder may still write whose lease somebody took or deleted without its knowledge.
        self._ousted_until = -math.inf
        self._has_led = False
        self._writes = False  #: whether the last instruction was to write
        self._reads_again = False  #: whether a write that fails is followed by a read immediately

    @property
    def holder(self) -> str:
        """The last observed holder of the lease, "" when it is free or not read yet."""
        return self._observed.holder if self._observed else ""

    @property
    def is_claiming(self) -> bool:
        """Whether it waits for the answer to a claim or a renewal: it may lead by then."""
        return self._writes

    @property
    def observed(self) -> Lease | None:
        """The lease as it was last seen; None before, and while it does not exist."""
        return self._observed

    def live_holder(self, monotonic: float) -> str:
        """The last observed holder, "" when the lease is free or has expired."""
        return self.holder if self.is_leading(monotonic) or monotonic < self._expiry() else ""

    def is_leading(self, monotonic: float) -> bool:
        """Whether the lease is surely ours."""
        return monotonic < self.held_until

    def handle(self, event: Event, now: Now) -> Instruction:
        """Take in what happened; what to do next."""
        instruction = self._handle(event, now)
        self._writes = isinstance(instruction, WriteLease)
        if self._has_led and not self.is_leading(now.monotonic):
            return Resign()
        return instruction

    def released(self, now: Now) -> Lease | None:
        """The lease as a leader leaves it that has written its last; None when it is not ours."""
        if not self.is_leading(now.monotonic) or self._observed is None:
            return None
        return replace(self._observed, holder="", duration_s=RELEASED_S, acquired=now.wall, renewed=now.wall)

    def _handle(self, event: Event, now: Now) -> Instruction:
        match event:
            case Due():
                leads = self.is_leading(now.monotonic)
                self._reads_again = leads or self._is_shared
                # A lease that others renew, too, has always changed meanwhile.
                if leads and not self._is_shared and self._observed is not None:
                    return WriteLease(self._claim(self._observed, now))
                return Read()
            case LeaseFound(lease):
                return self._found(lease, now)
            case Stored(lease, sent):
                self._observe(lease, now)
                if not self._has_led:
                    # Between two looks that find no lease, another candidate may have created one, and led:
                    # only the same version, seen twice, excludes that.
                    version, since = self._free or (ABSENT, now.monotonic)
                    self.led_from = now.monotonic if version == ABSENT else since
                self.held_until = sent + self.terms.renew_deadline_s
                self._has_led = True
            case Failed() if self._writes and self._reads_again:
                # Another client may have written it, or the answer to our write was lost. Those who share a
                # lease and march in step would lose against the same one each time.
                self._reads_again = False
                return Read()
        return self._rest(now)

    def _found(self, lease: Lease | None, now: Now) -> Instruction:
        self.has_looked = True
        self._note_free(lease, now)
        # A leader takes its lease back immediately: a candidate that never saw a holder would take it.
        patience_s = 0.0 if self.is_leading(now.monotonic) else self.patience_s
        if lease is None:
            self._note_ousted()
            since = self._free[1] if self._free is not None else now.monotonic
            if self._awaits_the_ousted(now):
                return Rest(min(self._rest(now).until, self._ousted_until))
            if self.was_led and self._observed is None:
                # Its last holder, whom this process never saw, may still lead.
                patience_s = max(patience_s, self.terms.lease_duration_s)
            if self.stands and now.monotonic >= since + patience_s:
                return WriteLease(self._claim(None, now))
            turn = self._rest(now).until
            return Rest(min(turn, since + patience_s) if self.stands else turn)
        if self._observed is not None and _is_only_asked_for(self._observed, lease):
            self._observed = lease  # its holder need not live: it has no more time than before
        elif self._observed is None or self._observed.version != lease.version:
            self._observe(lease, now)
        is_ours = lease.holder == self.identity
        if lease.holder and not is_ours:
            self.held_until = -math.inf  # it was taken from us: its new holder may write now
        if lease.holder and not is_ours and now.monotonic < self._expiry():
            return self._rest(now)
        if not self.stands:
            return self._rest(now)
        if not is_ours and self._awaits_the_ousted(now):
            return Rest(min(self._rest(now).until, self._ousted_until))
        since = self._free[1] if self._free is not None else self._expiry()
        if not is_ours and now.monotonic < since + patience_s:
            return Rest(min(self._rest(now).until, since + patience_s))
        return WriteLease(self._claim(lease, now))

    def _note_free(self, lease: Lease | None, now: Now) -> None:
        """Remember since when the lease has been free; its last holder had written its last by then.

        A shared lease counts as free for those who share it; its number of transitions tells whether another
        one had it in between.
        """
        if lease is not None and lease.holder and not (self._is_shared and lease.holder == self.identity):
            self._free = None
            return
        version = ABSENT if lease is None else str(lease.transitions) if self._is_shared else lease.version
        if self._free is None or self._free[0] != version:
            self._free = (version, now.monotonic)

    def _observe(self, lease: Lease, now: Now) -> None:
        is_released = not lease.holder and lease.duration_s == RELEASED_S
        if lease.holder != self.holder and not is_released:
            self._note_ousted()
        self._observed, self._observed_at = lease, now.monotonic

    def _note_ousted(self) -> None:
        """Somebody deleted or overwrote the lease: who had it may not know yet, and writes for some time.

        That is until its time is up, by our own terms at the latest, whatever somebody wrote into the lease.
        """
        if self.holder not in ("", self.identity):
            known_until = min(self._expiry(), self._observed_at + self.terms.lease_duration_s)
            self._ousted_until = max(self._ousted_until, known_until)

    def _awaits_the_ousted(self, now: Now) -> bool:
        return not self.is_leading(now.monotonic) and now.monotonic < self._ousted_until

    def _expiry(self) -> float:
        """When the lease that we observed may be taken from its holder."""
        return self._observed_at + (self._observed.duration_s if self._observed else 0)

    def _claim(self, lease: Lease | None, now: Now) -> Lease:
        """The lease as ours: renewed if it is, taken over if it is not, or the first one."""
        ours = Lease(self.identity, self.terms.lease_duration_s, now.wall, now.wall)
        if lease is None:
            return ours
        ours = replace(ours, version=lease.version, metadata=lease.metadata)
        if lease.holder == self.identity:
            kept = replace(ours, acquired=lease.acquired, transitions=lease.transitions)
            return replace(kept, wanted_by=lease.wanted_by)
        transitions = 0 if lease.transitions >= TRANSITIONS_AT_MOST else lease.transitions + 1
        return replace(ours, transitions=transitions)

    def _rest(self, now: Now) -> Rest:
        if self._has_led:
            return Rest(min(now.monotonic + self.terms.retry_period_s, self.held_until))
        if now.monotonic < self.hurries_until:
            return Rest(now.monotonic + self.terms.retry_period_s / 10)
        turn = now.monotonic + self.terms.retry_period_s * (1 + JITTER_FACTOR * now.fraction)
        expiry = self._expiry()
        return Rest(min(turn, expiry) if self.holder and expiry > now.monotonic else turn)


def _is_only_asked_for(before: Lease, lease: Lease) -> bool:
    """Whether somebody has asked for a lease, and its holder has not written it since."""
    return before.wanted_by != lease.wanted_by and lease == replace(
        before, version=lease.version, wanted_by=lease.wanted_by, metadata=lease.metadata
    )
