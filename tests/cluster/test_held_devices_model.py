"""Devices that reservations hold, against a table: nominated twice, handed on, released, and by uid."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cluster.invariants import check_book
from cluster.test_reservations import Scene
from devices.builders import a_claim, a_device, a_slice, fill
from planning.device_worlds import a_user
from plimsoll.cluster.reservations import ReservationReason
from plimsoll.devices.book import DeviceBook
from plimsoll.model.kinds.pod_info import Holder, HolderKind, PodInfo

#: Devices by node.
POOLS = {"n1": {"n1/d0"}, "n2": {"n2/d0", "n2/d1"}}
NAMES = st.sampled_from("aab")
STEPS = 30
CLAIMS = [f"{name}-{life}" for name in "abxy" for life in range(STEPS + 1)]
NODES = st.sampled_from(("n1", "n1", "n2", "gone"))
HOLDERS = {
    "x": Holder(HolderKind.REPLACEMENT, "x"),
    "y": Holder(HolderKind.BENEFICIARY, "y"),
}


class HeldDevices(RuleBasedStateMachine):
    """Every pod needs one device; a pod that is made again has the same name and another uid."""

    def __init__(self) -> None:
        super().__init__()
        self.scene = Scene("n1", "n2")
        self.book = self.scene.book
        self.devices = self.scene.cache.cluster.objects.ledger(DeviceBook)
        slices = [a_slice("n1", [a_device("d0")]), a_slice("n2", [a_device("d0"), a_device("d1")])]
        fill(self.devices, slices, *map(a_claim, CLAIMS))
        self.made = dict.fromkeys("abxy", 0)
        self.table: dict[str, str] = {}  #: the device by uid
        self.passed: dict[str, str] = {}  #: what was handed on, by the stand-in's uid
        self.timed: dict[str, float] = {}

    def pod(self, name: str) -> PodInfo:
        """The pod that has the name now; each has a claim of its own."""
        claim = f"{name}-{self.made[name]}"
        return self.scene.cache.info(a_user(name, claim=claim, uid=f"uid-{claim}"))

    @rule(name=NAMES)
    def made_again(self, name: str) -> None:
        """The controller has another pod now; the room of the one before is not its room."""
        self.made[name] += 1

    @rule(key=st.sampled_from("xxy"), node=NODES, lasts_s=st.none() | st.integers(3, 9))
    def reserved(self, key: str, node: str, lasts_s: Any) -> None:
        """Room for a pod that does not exist, with a device if one is free."""
        holder = HOLDERS[key]
        until = None if lasts_s is None else self.scene.clock.time + lasts_s
        self.table.pop(holder.uid, None)
        free = POOLS.get(node, set()) - set(self.table.values())
        self.made[key] += 1
        pod = self.pod(key)
        self.book.reserve_in_stead(holder, pod, node, ReservationReason.ROOM, "z", until=until)
        self.timed.pop(holder.uid, None)
        if until is not None:
            self.timed[holder.uid] = until
        if free:
            found = self.held()[holder.uid]
            assert found in free
            self.table[holder.uid] = found

    @rule(name=NAMES, node=NODES, key=st.sampled_from(("x", "x", "y", "")))
    def nominated(self, name: str, node: str, key: str) -> None:
        """A pod that exists, perhaps instead of a holder whose device it gets."""
        instead = HOLDERS[key].uid if key else ""
        pod = self.pod(name)
        self.book.nominate(pod, node, instead=instead)
        device = self.table.pop(instead, None) or self.table.pop(pod.uid, None)
        if instead and device is None:
            earlier = self.passed.get(instead)
            device = earlier if earlier not in self.table.values() else None
        elif instead and device is not None:
            self.passed[instead] = device
        self.table.pop(pod.uid, None)
        if device is not None and device.startswith(f"{node}/"):
            self.table[pod.uid] = device

    @rule(uids=st.sets(st.integers(0, 5), max_size=2))
    def released(self, uids: Any) -> None:
        """Reservations end."""
        known = sorted(self.book._by_uid)
        for uid in [known[at] for at in uids if at < len(known)]:
            self.book.release_uid(uid)
            self.table.pop(uid, None)
            self.timed.pop(uid, None)

    @rule(seconds=st.integers(1, 6))
    def passes(self, seconds: int) -> None:
        """Time goes on."""
        self.scene.passes(seconds)
        for uid, until in list(self.timed.items()):
            if until <= self.scene.clock.time:
                del self.timed[uid]
                self.table.pop(uid, None)

    def held(self) -> dict[str, str]:
        """The device by uid, as the book has it."""
        return {
            uid: f"{each.pool}/{each.device}"
            for uid, hold in self.devices.holds.items()
            for given in hold.given.values()
            for each in given.devices.results
        }

    @invariant()
    def agrees(self) -> None:
        """With the table; and no device is held twice."""
        check_book(self.book)
        assert self.held() == self.table
        assert len(set(self.table.values())) == len(self.table)


TestHeldDevices = HeldDevices.TestCase
TestHeldDevices.settings = settings(stateful_step_count=STEPS)
