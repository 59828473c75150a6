"""LayeredDict, against dicts."""

from weakref import ref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.model.layered_dict import ForkedDict, LayeredDict, layered

KEYS = st.integers(0, 9)
STEPS = st.lists(st.tuples(st.sampled_from(["set", "pop", "delete", "copy"]), KEYS, KEYS), max_size=40)


@given(st.lists(KEYS, max_size=10), STEPS)
@settings(max_examples=200, deadline=None)
def test_it_is_a_dict(start: list[int], steps: list[tuple[str, int, int]]) -> None:
    """The same content in the same order after any changes, and no copy sees another one's changes."""
    plain = {key: -key for key in start}
    content = layered(plain)
    others: list[tuple[LayeredDict[int, int], dict[int, int]]] = []
    for what, key, value in steps:
        match what:
            case "set":
                plain[key] = content[key] = value
            case "pop":
                assert content.pop(key, None) == plain.pop(key, None)
            case "delete" if key in plain:
                del plain[key], content[key]
            case "copy":
                others.append((content, dict(plain)))
                content = layered(content)
            case _:
                pass

        assert list(content.items()) == list(plain.items())
        assert list(content.values()) == list(plain.values())
        assert len(content) == len(plain)
        for each in range(10):
            assert (each in content) is (each in plain)
            assert content.get(each) == plain.get(each)
            assert content.get(each, "none") == plain.get(each, "none")
    for other, then in others:
        assert list(other.items()) == list(then.items())


@given(STEPS)
@settings(max_examples=200, deadline=None)
def test_each_copy_is_what_was_there_when_it_was_taken(steps: list[tuple[str, int, int]]) -> None:
    """In the same order, whatever is written afterwards to the original or to the copy."""
    plain: dict[int, int] = {}
    content: ForkedDict[int, int] = ForkedDict({})
    copies: list[tuple[LayeredDict[int, int], dict[int, int]]] = []
    for what, key, value in steps:
        match what:
            case "set":
                plain[key] = content[key] = value
            case "pop":
                assert content.pop(key, None) == plain.pop(key, None)
            case "delete" if key in plain:
                del plain[key], content[key]
            case "copy":
                copies.append((layered(content), dict(plain)))
                written = layered(content)
                written[key] = value
            case _:
                pass

        assert list(content.items()) == list(plain.items())
    for copy, then in copies:
        assert list(copy.items()) == list(then.items())


class Value:
    """One that weak references may name."""


def test_a_copy_costs_what_has_changed() -> None:
    """Copies of hundreds of thousands of pods would hold the event loop up, at each plan."""
    content: ForkedDict[int, Value] = ForkedDict({})
    for key in range(20_000):
        content[key] = Value()
    first = content.fork()
    for key in range(100):
        content[key] = Value()
    del content[100]

    assert (first.changes, content.fork().changes) == (0, 101)


def test_what_was_replaced_is_not_kept_for_long() -> None:
    """Nothing may be copied again for hours."""
    content: ForkedDict[int, Value] = ForkedDict({})
    for key in range(2_000):
        content[key] = Value()
    old = ref(content[0])
    content.fork()
    for key in range(2_000):
        content[key] = Value()

    assert old() is None
    assert content.fork().changes == 0


def test_what_would_pass_the_copies_by_is_refused() -> None:
    """Each write goes to what copies are made of."""
    content: ForkedDict[str, int] = ForkedDict({})
    for write in (content.clear, content.popitem, content.update, content.setdefault):
        with pytest.raises(TypeError, match="written to by key"):
            write()
    with pytest.raises(TypeError, match="written to by key"):
        content |= {"a": 1}
