"""Known objects against a plain dictionary: lists, changes and lists that break off, in any order."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from plimsoll.testing.builders import a_pod
from plimsoll.watches.known_objects import KnownObjects

NAMES = st.tuples(st.sampled_from(("one", "two")), st.sampled_from(("a", "b", "c")))


class Knowing(RuleBasedStateMachine):
    """The same steps with both."""

    def __init__(self) -> None:
        super().__init__()
        self.known = KnownObjects()
        self.expected: dict[tuple[str, str], Any] = {}
        self.shown: set[tuple[str, str]] = set()
        self.is_listing = False

    @rule(name=NAMES)
    def put(self, name: tuple[str, str]) -> None:
        """A new state, of a list or a watch."""
        pod = a_pod(name[1], namespace=name[0])

        assert self.known.put(pod) is self.expected.get(name)
        self.expected[name] = pod
        self.shown.add(name)

    @rule(name=NAMES)
    def pop(self, name: tuple[str, str]) -> None:
        """Gone."""
        assert self.known.pop(*name) is self.expected.pop(name, None)
        self.shown.discard(name)

    @rule()
    def begin(self) -> None:
        """A list begins; the one before may have broken off."""
        self.known.begin_list()
        self.shown, self.is_listing = set(), True

    @rule()
    def end(self) -> None:
        """The list is complete."""
        gone = {(each.namespace, each.name): each for each in self.known.end_list()}
        self.is_listing = False

        assert gone == {name: pod for name, pod in self.expected.items() if name not in self.shown}
        self.expected = {name: pod for name, pod in self.expected.items() if name in self.shown}

    @invariant()
    def knows_the_same(self) -> None:
        """All of them, in their latest state."""
        assert self.known.is_listing == self.is_listing
        assert len(self.known) == len(self.expected)
        assert all(self.known.find(*name) is pod for name, pod in self.expected.items())


TestKnowing = Knowing.TestCase
TestKnowing.settings = settings(max_examples=40, stateful_step_count=20)
