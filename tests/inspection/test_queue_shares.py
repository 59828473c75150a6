"""Answers of explain and top about queues; comments work out the shares."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspection.contents import Document, a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.inspection.explanations.pod import explain_pod
from plimsoll.inspection.explanations.pod_group import explain_pod_group
from plimsoll.inspection.queue_shares import QueueShare, queue_shares
from plimsoll.inspection.state import ClusterState
from plimsoll.toolkit.scheduling.fair_shares import QueueAccount


def in_queue(name: str, queue: str, node: str = "", cpu: str = "1", **labels: str) -> Document:
    pod = a_pod_document(name, node, cpu=cpu, owner=name, schedulerName="plimsoll")
    pod["metadata"].setdefault("labels", {}).update({"plimsoll.dev/queue": queue, **labels})
    return pod


def state_of(*documents: Document, queues: list[dict[str, Any]]) -> ClusterState:
    """A cluster of 8 cpu with these queues."""
    scheduling = {"schedulerName": "plimsoll", "fairShare": {"queues": queues, "reclaim": "AboveDeserved"}}
    policy = a_policy_document("teams", scheduling=scheduling)
    return ClusterState.of(content_of([a_node_document("a"), a_node_document("b"), policy, *documents]))


QUEUES: list[dict[str, Any]] = [
    {"name": "team", "weight": 3},
    {"name": "train", "parent": "team", "guaranteed": {"cpu": "2"}},
    {"name": "notes", "parent": "team", "capability": {"cpu": "6"}},
    {"name": "web"},
]


def test_a_pending_pod_has_the_standing_of_its_queue_in_its_answer() -> None:
    """Web has 6 of 8 and deserves 4: a quarter is its part of 8, and team asks for 4 only."""
    state = state_of(
        *(in_queue(f"web-{at}", "web", node, cpu="3") for at, node in enumerate("ab")),
        in_queue("notes-1", "notes", "a"),
        in_queue("train-1", "train", cpu="3"),
        in_queue("web-2", "web", cpu="2"),
        queues=QUEUES,
    )

    web, train = explain_pod(state, "shop", "web-2"), explain_pod(state, "shop", "train-1")

    assert web.queue is not None
    assert web.queue.share.borrowed == {"cpu": 2000}
    assert web.summary[-2:] == [
        "its queue web (cpu: has 6, deserves 4, borrows 2, which others may take back)",
        "team goes first: less of the cluster for the weight",
    ]
    assert train.queue is not None
    assert [each.queue for each in train.queue.above] == ["team"]
    assert train.summary[-1] == "its queue train in team (cpu: has 0, deserves 3, is guaranteed 2)"


def test_the_answer_about_a_placed_pod_and_a_group_has_all_resources_of_its_queue() -> None:
    """No queue goes before a pod that runs."""
    group = {"kind": "PodGroup", "metadata": {"name": "g", "namespace": "shop"}, "spec": {"minMember": 2}}
    members = [
        in_queue(f"notes-{at}", "notes", node, **{"plimsoll.dev/pod-group": "g"})
        for at, node in enumerate(("a", ""))
    ]
    state = state_of(group, *members, queues=QUEUES)

    told = "its queue notes in team (cpu: has 1, deserves 2, may have 6)"
    assert explain_pod(state, "shop", "notes-0").summary[-1] == told
    found = explain_pod_group(state, "shop", "g")
    assert found is not None
    assert (found.summary[-1], found.queue is not None) == (told, True)


@pytest.mark.parametrize("label", ["", "unlisted"])
def test_pods_of_no_listed_queue_are_in_default(label: str) -> None:
    """A gated pod is pending, and asks for nothing yet."""
    gated = in_queue("gated", label)
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    found = queue_shares(state_of(in_queue("x", label, "a"), gated, queues=[{"name": "web"}]))

    (default,) = [each for each in found.queues if each.queue == "default"]
    assert (default.pods, default.pending, default.used, default.waiting) == (1, 1, {"cpu": 1000}, {})
    assert found.summary == "2 queues, 0 with pending pods; none has more cpu than it deserves"


def test_a_cluster_without_queues_says_where_they_are_written() -> None:
    """No queue, and no sentence about one."""
    state = ClusterState.of(content_of([a_node_document("a"), a_policy_document(), a_pod_document("p", "a")]))

    assert queue_shares(state).summary == "no policy has queues: see spec.scheduling.fairShare"
    assert explain_pod(state, "shop", "p").queue is None


@pytest.mark.parametrize(
    ("used", "deserved", "borrowed"),
    [
        ({"cpu": 3}, {"cpu": 1}, {"cpu": 2}),
        ({"cpu": 1}, {"cpu": 1}, {}),
        ({"gpu": 1}, {"cpu": 1}, {"gpu": 1}),
        ({}, {"cpu": 1}, {}),
    ],
)
def test_what_is_not_deserved_is_borrowed(used: Any, deserved: Any, borrowed: Any) -> None:
    assert QueueAccount("web", "", used, {}, {}, {}, deserved, 0.0).borrowed == borrowed


@pytest.mark.parametrize(("waits", "victims"), [(False, 1), (True, 0)])
def test_an_answer_counts_what_other_queues_wait_for(waits: bool, victims: int) -> None:
    """Of 8 cpu, web has 5 and notes 3: a fourth is below notes' 4, and above 8/3 if train waits for 8 too."""
    queues = [{"name": each} for each in ("web", "notes", "train")]
    pods = [in_queue(f"web-{at}", "web", "ab"[at % 2]) for at in range(5)]
    pods += [in_queue(f"notes-{at}", "notes", "ab"[(at + 1) % 2]) for at in range(3)]
    pods += [in_queue("notes-9", "notes")]
    pods += [in_queue("train-9", "train", cpu="8")] * waits
    state = state_of(*pods, queues=queues)

    found = explain_pod(state, "shop", "notes-9").pending

    assert found is not None
    assert found.preemption is not None
    assert len(found.preemption.victims) == victims


# -- any queues --------------------------------------------------------------------------------------

#: The queues of QUEUES and the one of all other pods, each with those above it, from the root.
PATHS = {
    "team": ("team",),
    "notes": ("team", "notes"),
    "train": ("team", "train"),
    "web": ("web",),
    "default": ("default",),
}
WEIGHTS = {"team": 3}

pods = st.lists(
    st.tuples(
        st.sampled_from(("team", "notes", "train", "web", "", "unlisted")),
        st.sampled_from(("a", "b", "", "", "gated")),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=9,
)


@settings(max_examples=25)
@given(pods)
def test_queues_have_what_a_list_of_their_pods_says(drawn: list[tuple[str, str, int]]) -> None:
    """Sums, who is served first, and the sentences, each counted again pod by pod."""
    documents = []
    for at, (queue, place, cpu) in enumerate(drawn):
        document = in_queue(f"p{at}", queue, place.removesuffix("gated"), cpu=str(cpu))
        if place == "gated":
            document["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
        documents.append(document)
    rows = [(queue if queue in PATHS else "default", place, 1000 * cpu) for queue, place, cpu in drawn]

    def amount(name: str, *places: str) -> int:
        return sum(cpu for queue, place, cpu in rows if name in PATHS[queue] and place in places)

    state = state_of(*documents, queues=QUEUES)
    answer = queue_shares(state)
    found = {each.queue: each for each in answer.queues}

    assert list(found) == sorted(PATHS, key=PATHS.__getitem__)
    for name, each in found.items():
        own = [place for queue, place, _ in rows if queue == name]
        placed = sum(place in {"a", "b"} for place in own)
        assert (each.pods, each.pending, each.parent) == (
            placed,
            len(own) - placed,
            "".join(PATHS[name][-2:-1]),
        )
        assert each.used.get("cpu", 0) == amount(name, "a", "b")
        assert each.waiting.get("cpu", 0) == amount(name, "")
        above = amount(name, "a", "b") - each.deserved.get("cpu", 0)
        assert each.borrowed == ({"cpu": above} if above > 0 else {})
        assert each.standing == round(amount(name, "a", "b") / 8000 / WEIGHTS.get(name, 1), 6)

    waiting = [each for each in found.values() if each.waiting and each.pending]
    said = f"5 queues, {len(waiting)} with pending pods; "
    most = max((each.borrowed.get("cpu", 0) for each in found.values()), default=0)
    assert answer.summary.startswith(said)
    if not most:
        assert answer.summary == f"{said}none has more cpu than it deserves"
    else:
        lenders = [each.queue for each in found.values() if each.borrowed.get("cpu") == most]
        assert answer.summary in [f"{said}{each} borrows most cpu: {cores(most)}" for each in lenders]

    for at, (name, place, _) in enumerate(rows):
        if place == "":
            told = explain_pod(state, "shop", f"p{at}")
            first = before(name, found)
            assert told.queue is not None
            assert told.queue.served_before == first
            sentences = [sentence(name, found[name])]
            if first:
                more = f" and {len(first) - 3} more queue{'s' if len(first) > 4 else ''}" if first[3:] else ""
                verb = "goes" if len(first) == 1 else "go"
                sentences += [
                    f"{', '.join(first[:3])}{more} {verb} first: less of the cluster for the weight"
                ]
            assert told.summary[-len(sentences) :] == sentences


def before(name: str, found: dict[str, QueueShare]) -> list[str]:
    """The queues that are served before one: at its own level, unless some are before that above it."""
    for each in PATHS[name]:
        rivals = [other for other in found.values() if other.parent == found[each].parent and other.waiting]
        lower = sorted(
            (other.standing, other.queue) for other in rivals if other.standing < found[each].standing
        )
        if lower:
            return [queue for _, queue in lower]
    return []


def sentence(name: str, share: QueueShare) -> str:
    """What a pod's queue has of cpu."""
    said = f"cpu: has {cores(share.used.get('cpu', 0))}, deserves {cores(share.deserved.get('cpu', 0))}"
    for each, amounts in (("is guaranteed", share.guaranteed), ("may have", share.capability)):
        said += f", {each} {cores(amounts['cpu'])}" if amounts else ""
    if share.borrowed:
        said += f", borrows {cores(share.borrowed['cpu'])}, which others may take back"
    return f"its queue {' in '.join(reversed(PATHS[name]))} ({said})"


def cores(milli: int) -> str:
    """An amount of cpu."""
    return f"{milli}m" if milli % 1000 else f"{milli // 1000}"
