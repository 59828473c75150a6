"""PrioritySort: important pods first, then old ones."""

from plimsoll.framework import NoArgs
from plimsoll.plugins.priority_sort import PrioritySort
from plimsoll.testing.builders import a_pod, the_info


def test_higher_priority_goes_first_and_age_decides_among_equals() -> None:
    """An unset priority is 0; the timestamp is the entry into the queue."""
    plugin = PrioritySort(NoArgs())
    ordered = [("urgent", 1000, 9.0), ("old", None, 1.0), ("young", 0, 2.0), ("never", -1, 0.0)]

    keys = [plugin.sort_key(the_info(a_pod(name, priority=priority)), at) for name, priority, at in ordered]

    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
