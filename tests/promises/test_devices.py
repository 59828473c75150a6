"""DevicePromise finds devices in use twice, and bindings without claims of their own."""

from typing import Any

import pytest

from promises.commits import UNKNOWN, Author, Commit, Obj
from promises.devices import CLAIMS, CONTESTED_S, DevicePromise
from promises.findings import Findings
from promises.view import SLICES, View


class Story:
    """Commits of a cluster with one node and a GPU, a shared device and two parts of a third one on it."""

    def __init__(self, *others: str) -> None:
        self.view, self.findings = View(), Findings()
        self.promise = DevicePromise(self.view, self.findings, frozenset(others))
        self.write("nodes", {"metadata": {"name": "n"}})
        counters = {"sharedCounters": [{"name": "s", "counters": {"m": {"value": "4"}}}]}
        draws = [{"counterSet": "s", "counters": {"m": {"value": "3"}}}]
        memory = {"capacity": {"memory": {"value": "10"}}}
        devices = [
            {"name": "gpu"},
            {"name": "net", "allowMultipleAllocations": True, **memory},
            {"name": "part-1", "consumesCounters": draws},
            {"name": "part-2", "consumesCounters": draws},
        ]
        for name, spec in (("counters", counters), ("devices", {"devices": devices})):
            pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
            self.write(SLICES, {"metadata": {"name": name}, "spec": {"driver": "d", "pool": pool, **spec}})

    def write(
        self,
        collection: str,
        obj: Obj,
        at: float = 0.0,
        kind: str = "MODIFIED",
        author: Author = UNKNOWN,
    ) -> None:
        """A commit."""
        meta = obj["metadata"]
        before = self.view.find(collection, meta.get("namespace") or "", meta["name"])
        commit = Commit(collection, kind, obj, before, author, at)
        self.view.see(commit)
        self.promise.judge(commit)

    def claim(
        self, name: str, *devices: str, users: str = "", node: str = "n", at: float = 0.0, **more: Any
    ) -> None:
        """A claim with these devices, reserved for these pods; without any it is not allocated."""
        results = [{"request": "r", "driver": "d", "pool": "p", "device": each, **more} for each in devices]
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
        status: Obj = {"reservedFor": [{"resource": "pods", "name": each, "uid": each} for each in users]}
        if devices:
            selector = {"nodeSelectorTerms": terms}
            status["allocation"] = {"devices": {"results": results}, "nodeSelector": selector}
        owner = {"kind": "Pod", "name": users[:1], "uid": users[:1]}
        meta = {"name": name, "namespace": "x", "uid": name, "ownerReferences": [owner] if users else []}
        self.write(CLAIMS, {"metadata": meta, "status": status}, at)

    def waiting(self, name: str, *claims: str, scheduler: str = "", at: float = 0.0) -> Obj:
        """A pod that is created."""
        meta = {"name": name, "namespace": "x", "uid": name}
        wants = [{"name": each, "resourceClaimName": each} for each in claims]
        pod = {"metadata": meta, "spec": {"resourceClaims": wants, "schedulerName": scheduler}}
        self.write("pods", pod, at, "ADDED")
        return pod

    def pod(self, name: str, *claims: str, node: str = "n", at: float = 0.0) -> None:
        """A pod that is created and bound."""
        self.bind(self.waiting(name, *claims, at=at), node, at)

    def bind(self, pod: Obj, node: str = "n", at: float = 0.0) -> None:
        """A pod gets a node."""
        self.write("pods", {**pod, "spec": {**pod["spec"], "nodeName": node}}, at)

    @property
    def found(self) -> list[str]:
        """Violations, without their time."""
        return [each.partition(" ")[2] for each in self.findings.violations]


def test_pods_with_devices_of_their_own_are_well() -> None:
    """Also where one claim gives way that had a device of the other's."""
    story = Story()
    story.claim("one", "gpu", users="a")
    story.claim("two", "gpu", users="b")
    story.claim("two")
    story.pod("a", "one")
    story.claim("two", "part-1", users="b")
    story.pod("b", "two")

    assert story.found == []
    assert story.promise.contested == 1
    assert story.promise.unfinished() == []


def shares(story: Story, each: str, other: str, **more: Any) -> None:
    """Two pods, each with a device."""
    story.claim("one", each, users="a", **more)
    story.claim("two", other, users="b", **more)
    story.pod("a", "one")
    story.pod("b", "two")


@pytest.mark.parametrize(
    ("device", "other", "more", "problem"),
    [
        pytest.param("gpu", "gpu", {}, "d/p/gpu is in use twice: one, two", id="a-device"),
        pytest.param(
            "part-1", "part-2", {}, "6000 of 4000 milli of the counter s/m", id="counters-of-two-devices"
        ),
        pytest.param(
            "net",
            "net",
            {"shareID": "s", "consumedCapacity": {"memory": "6"}},
            "12000 of 10000 milli memory of d/p/net: one, two",
            id="capacity",
        ),
    ],
)
def test_a_device_in_use_twice_is_found(device: str, other: str, more: Obj, problem: str) -> None:
    """When the second pod is bound; and at the end."""
    story = Story()
    shares(story, device, other, **more)

    assert f"b was bound to n: {problem}" in story.found
    assert any(problem in each for each in story.promise.unfinished())


def test_shares_of_a_device_that_fit_are_well() -> None:
    """That is what it is for."""
    story = Story()
    shares(story, "net", "net", shareID="s", consumedCapacity={"memory": "5"})

    assert story.found == []


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        pytest.param({}, "its claim one is not allocated", id="not-allocated"),
        pytest.param({"node": "m", "users": "a"}, "its claim one is not allocated there", id="elsewhere"),
        pytest.param({"users": "b"}, "its claim one is not reserved for it", id="not-reserved"),
    ],
)
def test_a_pod_that_is_bound_without_its_claim_is_found(claim: dict[str, Any], problem: str) -> None:
    """Its kubelet would not start it."""
    story = Story()
    story.claim("one", *(("gpu",) if claim else ()), **claim)
    story.pod("a", "one")

    assert story.found == [f"a was bound to n: {problem}"]


def test_claims_that_give_no_way_are_found() -> None:
    """After half a minute, once."""
    story = Story()
    for name in ("one", "two"):
        story.claim(name, "gpu")
    for at in (CONTESTED_S, CONTESTED_S + 1, CONTESTED_S + 2):
        story.write("nodes", {"metadata": {"name": "n"}}, at)

    assert story.found == ["d/p/gpu was allocated twice for long: one, two"]
    assert story.promise.unfinished() == ["d/p/gpu is allocated twice at the end"]


def test_a_lost_claim_is_found() -> None:
    """Deleted, given to others, or without its devices while its pod has a node."""
    story = Story()
    story.claim("one", "gpu", users="a")
    story.pod("a", "one")
    story.claim("one", "net", users="a")
    story.claim("one", users="a")
    lost = story.view.find(CLAIMS, "x", "one")
    assert lost is not None
    story.write(CLAIMS, lost, kind="DELETED")

    assert story.found == [
        "the claim one was allocated to other devices",
        "the claim one lost its devices while a has a node",
        "the claim one of a was deleted",
    ]


@pytest.mark.parametrize("first_bound", ["ours", "other"])
@pytest.mark.parametrize("last", ["ours", "other"])
@pytest.mark.parametrize(("device", "second"), [("gpu", "gpu"), ("part-1", "part-2")])
def test_of_two_claims_the_one_allocated_last_is_wrong(
    first_bound: str, last: str, device: str, second: str
) -> None:
    """In whichever order they are bound; a scheduler that was said not to look at others is only counted."""
    story = Story("other")
    pods = {
        "a": story.waiting("a", "one", scheduler="other" if last == "ours" else "ours"),
        "b": story.waiting("b", "two", scheduler=last),
    }
    story.claim("one", device, users="a")
    story.claim("two", second, users="b")
    for pod in sorted(pods.values(), key=lambda each: each["spec"]["schedulerName"] != first_bound):
        story.bind(pod)
    for at in (0.0, CONTESTED_S + 1):
        story.write("nodes", {"metadata": {"name": "n"}}, at)

    assert bool(story.found) is (last == "ours")
    assert bool(story.promise.unfinished()) is (last == "ours")
    assert bool(story.promise.theirs) is (last == "other")
    assert story.promise.bound == {"ours": 1, "other": 1}


def waiting(story: Story, **asked: Any) -> None:
    """A node with room, and a pod of ours that waits for its claim."""
    status = {"allocatable": {"cpu": "4", "pods": "9"}, "conditions": [{"type": "Ready", "status": "True"}]}
    story.write("nodes", {"metadata": {"name": "n"}, "spec": {}, "status": {}})
    story.write("nodes", {"metadata": {"name": "free"}, "spec": {}, "status": status})
    pool = {"name": "q", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": "free", "pool": pool, "devices": [{"name": "gpu"}]}
    story.write(SLICES, {"metadata": {"name": "near"}, "spec": spec})
    request = {"name": "r", "exactly": {"allocationMode": "ExactCount", "count": 1, **asked}}
    meta = {"name": "wants", "namespace": "x", "uid": "wants"}
    story.write(CLAIMS, {"metadata": meta, "spec": {"devices": {"requests": [request]}}})
    pod = {"schedulerName": "ours", "resourceClaims": [{"name": "gpu", "resourceClaimName": "wants"}]}
    pod["containers"] = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    story.write("pods", {"metadata": {**meta, "name": "a"}, "spec": pod, "status": {}}, kind="ADDED")


def test_a_pod_that_waits_though_devices_are_free_is_found() -> None:
    """Only where it is certain that it would get them."""
    story = Story()
    waiting(story)

    assert story.promise.forgotten("ours") == ["a is not placed, though free has devices"]
    assert story.promise.forgotten("theirs") == []


@pytest.mark.parametrize("asked", [{"count": 2}, {"selectors": ["..."]}, {"allocationMode": "All"}])
def test_a_pod_whose_claim_may_get_nothing_is_let_wait(asked: Obj) -> None:
    """Too few devices, or what is not evaluated here."""
    story = Story()
    waiting(story, **asked)

    assert story.promise.forgotten("ours") == []


def test_a_claim_that_keeps_its_devices_for_no_pod_is_found() -> None:
    """Its pod is gone."""
    story = Story()
    story.claim("one", "gpu", users="a")

    assert story.promise.forgotten("ours") == ["the claim one has devices at the end, and no pod names it"]


def test_a_pod_that_is_made_with_a_node_is_no_binding() -> None:
    """A user names a node and a claim that is absent: no scheduler was asked, and none is at fault."""
    story = Story()
    pod = {"metadata": {"name": "a", "namespace": "x", "uid": "a"}}
    wants = [{"name": "gone", "resourceClaimName": "gone"}]
    story.write("pods", {**pod, "spec": {"resourceClaims": wants, "nodeName": "nowhere"}}, kind="ADDED")

    assert story.found == []
    assert story.promise.unfinished() == []


OURS = Author("red")
BROKEN, WORN = {"key": "broken", "effect": "NoExecute"}, {"key": "worn", "effect": "None"}
ONE = {"name": "r", "exactly": {"allocationMode": "ExactCount", "count": 1}}
ALL = {"name": "r", "exactly": {"allocationMode": "All"}}
EITHER = {"name": "r", "firstAvailable": [{"name": "two", "count": 2}, {"name": "one"}]}
TOLERANT = {"name": "r", "exactly": {"tolerations": [{"key": "broken", "operator": "Exists"}]}}


def allocated(story: Story, asked: Obj, *given: str, author: Author = OURS, at: float = 100.0) -> list[str]:
    """What is said of a claim for these requests that gets devices by these names, from the first on."""
    names = ("gpu", "net", "part-1")
    results = [
        {"request": request, "driver": "d", "pool": "p", "device": device}
        for request, device in zip(given, names, strict=False)
    ]
    spec = {"devices": {"requests": [asked]}}
    before: Obj = {"metadata": {"name": "c", "namespace": "x", "uid": "c"}, "spec": spec}
    story.write(CLAIMS, before, at)
    story.write(
        CLAIMS, {**before, "status": {"allocation": {"devices": {"results": results}}}}, at, author=author
    )
    return story.found


@pytest.mark.parametrize(
    ("asked", "given", "problem"),
    [
        pytest.param(ONE, ["r"], "", id="one"),
        pytest.param(ONE, ["r", "r"], "2 devices for r, which asks for 1", id="one-too-many"),
        pytest.param(ONE, ["r", "s"], "devices for s, which it does not ask for", id="of-no-request"),
        pytest.param(ALL, ["r", "r"], "", id="all"),
        pytest.param(EITHER, ["r/two", "r/two"], "", id="the-first"),
        pytest.param(EITHER, ["r/one"], "", id="another-one"),
        pytest.param(EITHER, ["r/two"], "1 devices for r/two, which asks for 2", id="too-few"),
        pytest.param(EITHER, ["r/two", "r/two", "r/one"], "devices for 2 alternatives of r", id="both"),
    ],
)
def test_a_claim_gets_what_it_asks_for(asked: Obj, given: list[str], problem: str) -> None:
    """One alternative of each request, with as many devices as that says."""
    assert allocated(Story(), asked, *given) == ([f"the claim c was allocated {problem}"] if problem else [])


def test_a_request_that_gets_nothing_is_found() -> None:
    said = ["devices for other, which it does not ask for", "devices for 0 alternatives of r"]

    assert allocated(Story(), ONE, "other") == [f"the claim c was allocated {each}" for each in said]


@pytest.mark.parametrize(
    ("taint", "asked", "tainted_at", "author", "is_wrong"),
    [
        pytest.param(BROKEN, ONE, 0.0, OURS, True, id="for-long"),
        pytest.param(BROKEN, ONE, 80.0, OURS, False, id="lately"),
        pytest.param(BROKEN, TOLERANT, 0.0, OURS, False, id="tolerated"),
        pytest.param(WORN, ONE, 0.0, OURS, False, id="that-informs"),
        pytest.param(BROKEN, ONE, 0.0, UNKNOWN, False, id="by-somebody-else"),
    ],
)
def test_no_device_is_given_out_whose_taint_is_not_tolerated(
    taint: Obj, asked: Obj, tainted_at: float, author: Author, is_wrong: bool
) -> None:
    """What a watch may not show yet does not count, nor does what others allocate."""
    story = Story()
    slice_ = story.view.find(SLICES, "", "devices")
    assert slice_ is not None
    devices = [
        {**each, "taints": [taint]} if each["name"] == "gpu" else each for each in slice_["spec"]["devices"]
    ]
    story.write(SLICES, {**slice_, "spec": {**slice_["spec"], "devices": devices}}, tainted_at)

    said = [f"the claim c was allocated d/p/gpu, whose taint {taint['key']} it does not tolerate"]
    assert allocated(story, asked, "r", author=author) == (said if is_wrong else [])
