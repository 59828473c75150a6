"""LayeredDict, against dicts."""

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.model.layered_dict import LayeredDict, layered

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
