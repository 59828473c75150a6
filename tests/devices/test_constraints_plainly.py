"""Constraints of claims, as a list of the devices that were added says, with what upstream's forget."""

from __future__ import annotations

from random import Random
from typing import Any

from devices.builders import a_device, a_slice
from plimsoll.devices.constraints import constraints_of
from plimsoll.devices.pools import PooledDevice
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.resource_claim import DeviceConstraint

ATTRIBUTE = "gpu.example.com/kind"
#: The string "1" and the number 1 are two values; without the attribute, no device meets a constraint.
KINDS: list[dict[str, Any]] = [
    {},
    {ATTRIBUTE: {"string": "1"}},
    {ATTRIBUTE: {"string": "2"}},
    {ATTRIBUTE: {"int": 1}},
    {ATTRIBUTE: {"bool": True}},
]
PUBLISHED = a_slice("n", [a_device(f"d{n}", attributes=each) for n, each in enumerate(KINDS)])
DEVICES = [PooledDevice(PUBLISHED, each, is_reached=True) for each in PUBLISHED.spec.devices]
NAMES = ["", "a", "b", "b/first", "b/second"]


def value(number: int) -> str:
    """The value of a device, with its type."""
    return str(KINDS[number].get(ATTRIBUTE, ""))


def test_devices_match_or_differ_as_a_list_of_them_says() -> None:
    """They are added and taken back in any order; upstream remembers one value of each request."""
    refused = admitted = 0
    for seed in range(200):
        random = Random(seed)
        kind = random.choice(["matchAttribute", "distinctAttribute"])
        requests = random.sample(NAMES[1:], random.randint(0, 2))
        (constraint,) = constraints_of([convert(DeviceConstraint, {kind: ATTRIBUTE, "requests": requests})])
        added: list[tuple[str, str]] = []  #: requests of all that were admitted
        common, count = "", 0
        latest: dict[str, str] = {}
        for _ in range(12):
            request = random.choice(["a", "b", "c"])
            alternative = random.choice(["", "first", "second"]) if request == "b" else ""
            concerns = not requests or request in requests or f"{request}/{alternative}" in requests
            if added and random.random() < 0.3:
                request, alternative = added.pop(random.randrange(len(added)))
                concerns = not requests or request in requests or f"{request}/{alternative}" in requests
                constraint.remove(request, alternative)
                if concerns:
                    count -= 1
                    latest.pop(request, None)
                continue
            number = random.randrange(len(KINDS))
            is_admitted = True
            if concerns and kind == "matchAttribute":
                is_admitted = value(number) != "" and (count == 0 or value(number) == common)
                if is_admitted:
                    common, count = value(number), count + 1
            elif concerns:
                is_admitted = value(number) != "" and value(number) not in latest.values()
                if is_admitted:
                    latest[request] = value(number)
                    count += 1

            assert constraint.add(request, alternative, DEVICES[number]) is is_admitted

            refused, admitted = refused + (not is_admitted), admitted + is_admitted
            if is_admitted:
                added.append((request, alternative))
    assert min(refused, admitted) > 300


def test_a_constraint_of_no_known_kind_is_left_out() -> None:
    written = [{"requests": []}, {"matchAttribute": ATTRIBUTE}, {"distinctAttribute": ATTRIBUTE}]

    made = constraints_of(convert(DeviceConstraint, each) for each in written)

    assert [type(each).__name__ for each in made] == ["MatchAttribute", "DistinctAttribute"]
