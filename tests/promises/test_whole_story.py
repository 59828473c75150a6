"""A move that goes well breaks no promise, and is counted."""

from promises.streams import a_cluster, a_move


def test_a_move_from_its_record_to_its_replacement() -> None:
    """The neighbour of every stream that breaks a promise."""
    stream = a_cluster()
    name = a_move(stream)
    stream.pod("web-3")
    stream.bind("web-3", "n2")
    stream.become_ready("web-3")
    stream.settle(name, "web-3")
    stream.finish()

    facts = stream.checker.facts
    assert stream.said == []
    assert (facts.bindings, facts.evictions, facts.takeovers) == (1, 1, 1)
    assert facts.phases == {"Planned": 1, "Evicting": 1, "Evicted": 1, "Settled": 1}
    assert facts.transitions["Evicted", "Settled", "red"] == 1
