"""Election: writes without the lease, leases taken too early, and their neighbours."""

import pytest

from promises.commits import UNKNOWN
from promises.streams import Stream, a_cluster

WRITE = "/api/v1/namespaces/default/pods/web-1"


def sent(stream: Stream, name: str = "red", method: str = "PATCH", path: str = WRITE) -> list[str]:
    """What is said of one request."""
    stream.checker.judge_request(stream.by(path, method=method, name=name), stream.at)
    return stream.said


@pytest.mark.parametrize(
    ("method", "path", "is_fine"),
    [
        ("PATCH", WRITE, False),
        ("GET", WRITE, True),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plimsoll", True),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", True),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", True),
    ],
)
def test_who_does_not_lead_writes_nothing(method: str, path: str, is_fine: bool) -> None:
    """But its own lease, and what it asks about its rights."""
    said = sent(a_cluster(), "blue", method, path)

    assert said == ([] if is_fine else [f"blue sent {method} {path}, but the lease is held by red-id"])


def test_without_a_lease_no_process_writes() -> None:
    """It has not been taken yet."""
    assert sent(Stream()) == [f"red sent PATCH {WRITE}, but the lease has no holder"]


@pytest.mark.parametrize(("seconds", "is_fine"), [(14.9, True), (15.0, False)])
def test_who_was_robbed_may_write_until_the_lease_would_have_expired(seconds: float, is_fine: bool) -> None:
    """It cannot know."""
    stream = a_cluster()
    stream.lead("", "thief-id")
    stream.wait(seconds)
    said = sent(stream)

    assert said == ([] if is_fine else [f"red sent PATCH {WRITE}, but the lease is held by thief-id"])


def test_a_leader_whose_renewal_is_late_may_write_while_the_lease_is_its_own() -> None:
    """It was not taken."""
    stream = a_cluster()
    stream.wait(60.0)

    assert sent(stream) == []


def test_who_gave_the_lease_away_writes_nothing_more() -> None:
    """Until it has it again."""
    stream = a_cluster()
    stream.lead(holder="")
    sent(stream)
    stream.lead()

    assert sent(stream) == [f"red sent PATCH {WRITE}, but the lease has no holder"]


@pytest.mark.parametrize(
    ("silence_s", "said"),
    [(13.3, ["blue took the lease of red-id after 13.3 s"]), (13.35, []), (13.4, [])],
)
def test_a_lease_is_taken_when_it_has_expired(silence_s: float, said: list[str]) -> None:
    """15 s by a clock that may be fast."""
    stream = Stream()
    stream.lead()
    stream.wait(silence_s)
    stream.lead("blue")

    assert stream.said == said
    assert stream.checker.facts.takeovers == 2


def test_a_released_lease_is_taken_immediately() -> None:
    """It has no holder."""
    stream = Stream()
    stream.lead()
    stream.lead(holder="")
    stream.lead("blue")

    assert stream.said == []
    assert sent(stream, "blue") == []


@pytest.mark.parametrize(
    ("seconds", "said"), [(14.9, []), (15.0, ["red took the lease of thief-id after 2.0 s"])]
)
def test_who_was_robbed_may_take_it_back(seconds: float, said: list[str]) -> None:
    """While it would still be its own."""
    stream = Stream()
    stream.wait(100.0)
    stream.lead()
    stream.wait(seconds - 2.0)
    stream.lead("", "thief-id")
    stream.wait(2.0)
    stream.lead()

    assert stream.said == said


@pytest.mark.parametrize("how", ["deleted", "emptied", "shortened", "stolen"])
def test_a_lease_that_somebody_offers_is_taken_immediately(how: str) -> None:
    """Deleted by hand, without a holder, or with a shorter time in it; one that was stolen is to expire."""
    stream = Stream()
    stream.lead()
    stream.wait(2.0)
    if how == "deleted":
        stream.delete_lease()
    else:
        holder = "" if how == "emptied" else "red-id"
        stream.lead("", holder, duration_s=14 if how == "shortened" else 15)
    stream.lead("blue")

    assert stream.said == (["blue took the lease of red-id after 0.0 s"] if how == "stolen" else [])


def test_a_lease_is_offered_once() -> None:
    """Who took it has it for its whole time."""
    stream = Stream()
    stream.lead()
    stream.lead("", "red-id", duration_s=1)
    stream.lead("blue")
    stream.wait(2.0)
    stream.lead("green")

    assert stream.said == ["green took the lease of blue-id after 2.0 s"]


def test_a_deleted_lease_has_no_holder() -> None:
    """Who had it may write until it would have expired; that is no change of the leader."""
    stream = Stream()
    stream.lead()
    stream.delete_lease()
    assert sent(stream) == []

    stream.wait(15.0)
    assert sent(stream) == [f"red sent PATCH {WRITE}, but the lease has no holder"]
    assert stream.checker.facts.takeovers == 1


def test_renewals_are_no_takeovers() -> None:
    """Nor are other leases, of the same name elsewhere or of another name."""
    stream = Stream()
    stream.lead()
    stream.wait(2.0)
    stream.lead()
    stream.lead("blue", lease="another")

    assert (stream.said, stream.checker.facts.takeovers) == ([], 1)


def test_a_write_of_people_needs_no_lease() -> None:
    """They have no name."""
    stream = a_cluster()
    stream.pod("new", "n2")
    stream.change("pods", "web-1", {"metadata": {"deletionTimestamp": "now"}}, UNKNOWN)

    assert stream.said == []
