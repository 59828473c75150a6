"""LeaseFaults meddle with a lease while its holder renews it, and make the holder slow at the answer.

A leader reads its lease only after a renewal that failed, and learns something after the end of its lease
only when it was paused or slow. Random pauses hardly ever meet both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import orjson

from roadstead.store.api import Write
from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from simulation.deeds.scene import Scene, Way, attempted
from simulation.exchanges import Exchange
from simulation.faults import FaultKind
from simulation.replica import Replica

LEASES = "leases.coordination.k8s.io"
PATH = re.compile(r"/apis/coordination\.k8s\.io/v1/namespaces/(?P<ns>[^/]+)/leases(/(?P<name>[^/]+))?")

#: Who steals leases.
THIEF = "somebody-else"

#: Seconds of a delay: the answer comes after the end of the lease that the holder had before, but before the
#: end of what it has just written; or after both.
BETWEEN_S, BEYOND_S = (8.1, 9.9), (10.5, 13.0)

#: Share of the reads of a stolen lease that may be meddled with, in addition to that of renewals.
READS = 0.6

#: Share of the delays in which the answer is taken in, and then a step takes long. In the others the process
#: is paused, and its request has timed out when it goes on.
STEPS = 0.7


class LeaseFaults:
    """Acts at renewals: an :class:`simulation.network.Interference`."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._random = scene.random
        self._delays: dict[Exchange, tuple[float, float]] = {}  #: after it
        self._awaited: set[tuple[str, str]] = set()  #: sender and lease of a read at which it is delayed
        self._claimed: set[tuple[str, str]] = set()  #: sender and lease of what was claimed before

    def arrives(self, exchange: Exchange) -> None:
        """A request is at the API server and will be carried out now."""
        found = PATH.fullmatch(exchange.request.path)
        if found is None:
            return
        if exchange.request.method == "GET":
            self._at_read(exchange, found["ns"], found["name"])
        elif self._claims(exchange):
            name = found["name"] or _body(exchange)["metadata"]["name"]
            is_first = (exchange.sender, name) not in self._claimed
            self._claimed.add((exchange.sender, name))
            if self._scene.faults.at_write(FaultKind.LEASE_MEDDLED):
                self._at_write(exchange, found["ns"], name, is_first=is_first)

    def _at_read(self, exchange: Exchange, namespace: str, name: str) -> None:
        """One that follows a failed renewal, or that finds a stolen lease."""
        read = (exchange.sender, name)
        if read in self._awaited:
            self._awaited.discard(read)
            if self._random.random() < 0.4:  # a write would make it again
                self._meddle(namespace, name, among=("it is deleted",))
            self._delay(exchange, BEYOND_S)
        elif (
            _holder(self._scene.found(LEASES, namespace, name) or {}) == THIEF
            and self._random.random() <= READS
            and self._scene.faults.at_write(FaultKind.LEASE_MEDDLED)
        ):
            if read not in self._claimed:
                self._meddle(namespace, name, among=("it is deleted",))
                return
            if self._random.random() < 0.7:
                self._meddle(namespace, name)
            self._delay(exchange, BEYOND_S)

    def _at_write(self, exchange: Exchange, namespace: str, name: str, *, is_first: bool) -> None:
        """A first claim is answered late; a renewal is, or it fails, and the read after it may be late."""
        if is_first:
            self._delay(exchange, BEYOND_S)
        elif self._random.random() < 0.3:
            self._delay(exchange, self._random.choice((BETWEEN_S, BETWEEN_S, BEYOND_S)))
        elif self._meddle(namespace, name):
            self._scene.faults.count(FaultKind.LEASE_MEDDLED)
            if self._random.random() < 0.7:
                self._awaited.add((exchange.sender, name))

    def _delay(self, exchange: Exchange, seconds: tuple[float, float]) -> None:
        """After it has taken effect."""
        self._delays[exchange] = seconds
        self._scene.faults.count(FaultKind.LEASE_MEDDLED)

    def has_taken_effect(self, exchange: Exchange) -> None:
        """The same exchange, before its answer is sent."""
        seconds = self._delays.pop(exchange, None)
        if seconds is None:
            return
        name = exchange.sender.partition(".")[0]
        replica = next(each for each in self._scene.replicas if each.name == name)
        is_step = self._random.random() < STEPS
        self._scene.tell(
            "deed",
            f"at {exchange.request.method} {exchange.request.path}: its sender is"
            f" {'slow' if is_step else 'paused'}",
        )
        lasts_s = self._random.uniform(*seconds)
        if is_step:
            exchange.upon = partial(self._slow, replica, exchange.sender, lasts_s)
        else:
            replica.pause(lasts_s)

    @staticmethod
    def _slow(replica: Replica, sender: str, seconds: float) -> None:
        """The step that takes in the answer takes long, or another one of these moments."""
        if replica.life.name == sender:
            replica.slow_step(seconds, reads=1)

    def _claims(self, exchange: Exchange) -> bool:
        """Whether the sender claims or renews the lease; it may also give it away."""
        return _holder(_body(exchange)) == self._identity(exchange.sender)

    def _identity(self, sender: str) -> str:
        lives = (life for replica in self._scene.replicas for life in replica.lives)
        return next((life.identity for life in lives if life.name == sender), "")

    def _meddle(self, namespace: str, name: str, *, among: Sequence[str] = ()) -> bool:
        """Somebody writes on it, empties it, deletes it, or takes it: one of all these, or of those given."""
        lease = self._scene.found(LEASES, namespace, name)
        if lease is None:
            return False
        changed: Obj = copied(lease)

        def touch() -> None:
            notes = changed["metadata"].setdefault("annotations", {})
            notes["simulated.test/note"] = self._scene.named("n")
            self._scene.api.update(LEASES, changed, Write())

        def free() -> None:
            changed["spec"]["holderIdentity"] = ""
            self._scene.api.update(LEASES, changed, Write())

        def steal() -> None:
            changed["spec"]["holderIdentity"] = THIEF
            self._scene.api.update(LEASES, changed, Write())

        ways: dict[str, Way] = {
            "it is written on": touch,
            "it is emptied": free,
            "it is stolen": steal,
            "it is deleted": lambda: self._scene.api.delete(LEASES, namespace, name),
        }
        what = self._random.choice(among or list(ways))
        self._scene.tell("deed", f"at the renewal of lease {name}: {what}")
        return attempted(ways[what])


def _holder(lease: Obj) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def _body(exchange: Exchange) -> Obj:
    try:
        parsed = orjson.loads(exchange.request.body or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
