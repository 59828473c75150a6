"""Invariants of what is known about replacements, checked by tests after each step."""

from plimsoll.rebalancing.moves.sightings import ReplacementSightings


def check_sightings(sightings: ReplacementSightings) -> None:
    """Check that each credited pod is credited to one move that waits, and is not spent.

    Raises:
        AssertionError: An invariant is violated.
    """
    for uid, followed in sightings._credited.items():
        if followed.reported is None or followed.reported.uid != uid or uid in sightings._spent:
            raise AssertionError(f"pod {uid} is credited to {followed.key}, which has {followed.reported}")
    reported = [
        each.reported.uid for waiting in sightings._waiting.values() for each in waiting if each.reported
    ]
    if sorted(reported) != sorted(sightings._credited):
        raise AssertionError(f"{sorted(sightings._credited)} are credited, moves have {sorted(reported)}")
