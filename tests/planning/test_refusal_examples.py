"""A refusal names pods: one of each owner before a second one of any."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.planning.moves import Refused
from plimsoll.rebalancing.runs.refusal_examples import EXAMPLES, chosen, examples
from plimsoll.testing.builders import a_pod, the_info


@given(st.lists(st.integers(0, 2 * EXAMPLES), max_size=4 * EXAMPLES))
def test_owners_come_before_second_pods(owners: list[int]) -> None:
    """The plain rule: owners by their first pod, then the others in order; no more than may be named."""
    pods = [
        the_info(a_pod(f"p{at}", owner=f"ReplicaSet/o{owner}" if owner else "none"))
        for at, owner in enumerate(owners)
    ]
    refused = [Refused(each, "S", "", Refusal("R", "why")) for each in pods]
    found = chosen(refused)

    keys = [
        each.pod.pod.metadata.owner.uid if each.pod.pod.metadata.owner else each.pod.uid for each in refused
    ]
    firsts = [each for at, each in enumerate(refused) if keys[at] not in keys[:at]]
    seconds = [each for each in refused if each not in firsts]
    names = [each.pod.key for each in (*firsts, *seconds)][:EXAMPLES]
    assert [each.pod.key for each in found][:EXAMPLES] == names
    assert len([each for each in found if each in firsts]) <= EXAMPLES
    assert [each.partition(" ")[0] for each in examples(refused)] == names
