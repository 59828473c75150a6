"""DevicePromise: no device is in use twice, and a pod is bound only with claims that are its own there.

What one of our processes allocates is what the claim asks for: as many devices, and none with a taint that
the request does not tolerate and that the device has had for as long as a watch may be behind.

Nothing in the API keeps two schedulers that do not know of each other from allocating one device to two
claims. So what is judged is the moment when a pod is bound: no other claim with that device may be in use
then, and of two such claims one must give way within :data:`CONTESTED_S`.

A claim is in use when a pod that it is reserved for has a node and is neither over nor gone.

Schedulers that do not look at what others have allocated, such as kube-scheduler, can be named. Of claims
with one device the one that was allocated last is wrong: where such a scheduler has allocated it, that is
counted, and no promise was broken.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from promises.affinities import is_tolerated
from promises.commits import Commit, Obj
from promises.findings import Findings
from promises.placeable import Places
from promises.pods import is_leaving, is_over, node_of
from promises.quantities import milli
from promises.view import SLICES, View

CLAIMS = "resourceclaims.resource.k8s.io"

#: Seconds for which two claims may have one device before one gives way.
CONTESTED_S = 30.0

#: More devices than any node has: what a pod wants is not evaluated here.
UNKNOWN = math.inf

#: Driver, pool and name.
Device = tuple[str, str, str]


class DevicePromise:
    """Judges claims and the bindings of pods that have some.

    Args:
        others: Names of schedulers that do not look at what others have allocated.
        contested_s: Seconds for which two claims may have one device.

    Attributes:
        contested: How often two claims had one device.
        bound: Pods with claims that were bound, by the name of their scheduler.
        theirs: What would be a violation, had not one of the others allocated last.
    """

    def __init__(
        self,
        view: View,
        findings: Findings,
        others: frozenset[str] = frozenset(),
        contested_s: float = CONTESTED_S,
    ) -> None:
        self._view = view
        self._contested_s = contested_s
        self._findings = findings
        self._others = others
        self._allocated: dict[str, tuple[int, str]] = {}  # by uid: in which order, and for which scheduler
        self.theirs: list[str] = []
        self._since: dict[Device, float] = {}
        self._told: set[Device] = set()
        self._orders = 0
        self.contested = 0
        self.bound: Counter[str] = Counter()
        self._made_with_node: set[str] = set()

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection == CLAIMS:
            self._judge_claim(commit)
        elif commit.collection == "pods" and commit.type != "DELETED":
            node = node_of(commit.obj)
            if node and commit.type == "ADDED":  # such a pod passes all schedulers
                self._made_with_node.add(commit.obj["metadata"]["uid"])
            elif node and not node_of(commit.before) and claim_names(commit.obj):
                self.bound[scheduler_of(commit.obj)] += 1
                for problem in self._unfit(commit.obj, node, commit.at):
                    name = commit.obj["metadata"]["name"]
                    self._findings.violated(commit.at, f"{name} was bound to {node}: {problem}")
        self._report_contested(commit.at)

    def unfinished(self) -> list[str]:
        """What must not be at the end."""
        found = [
            f"{'/'.join(device)} is allocated twice at the end"
            for device in sorted(self._since)
            if not self._is_theirs(self._holders(device))
        ]
        for pod in self._view.objects("pods"):
            node = node_of(pod)
            if pod["metadata"]["uid"] in self._made_with_node:
                continue
            if node and not is_over(pod) and not is_leaving(pod):
                name = pod["metadata"]["name"]
                problems = self._unfit(pod, node, math.inf)
                found += [f"{name} on {node}, at the end: {problem}" for problem in problems]
        return found

    def forgotten(self, scheduler: str) -> list[str]:
        """Claims that have devices for no pod, and pods that wait though devices and a node are there."""
        found = []
        pods = list(self._view.objects("pods"))
        named = {(each["metadata"].get("namespace"), name) for each in pods for name in claim_names(each)}
        for claim in self._all_claims():
            meta = claim["metadata"]
            if allocation_of(claim) and (meta.get("namespace"), meta["name"]) not in named:
                found.append(f"the claim {meta['name']} has devices at the end, and no pod names it")
        places = Places(self._view)
        for pod in pods:
            if node_of(pod) or is_over(pod) or pod["spec"].get("schedulerName") != scheduler:
                continue
            wanted = self._wanted(pod)
            plain = {**pod, "spec": {key: pod["spec"][key] for key in pod["spec"] if key != "resourceClaims"}}
            place = next((each for each in places.of(plain) if wanted <= self._free_on(each)), "")
            if wanted and place:
                found.append(f"{pod['metadata']['name']} is not placed, though {place} has devices")
        return found

    def _wanted(self, pod: Obj) -> float:
        """How many devices the claims of a pod still want; :data:`UNKNOWN` where that is not sure."""
        count = 0.0
        for name in claim_names(pod):
            claim = self._view.find(CLAIMS, pod["metadata"].get("namespace") or "", name)
            asked = ((claim or {}).get("spec") or {}).get("devices") or {}
            if claim is None or allocation_of(claim) or asked.get("constraints"):
                return UNKNOWN
            for each in asked.get("requests") or ():
                exactly = each.get("exactly") or {}
                if exactly.get("allocationMode") != "ExactCount" or exactly.get("selectors"):
                    return UNKNOWN
                count += exactly.get("count", 1)
        return count

    def _free_on(self, node: str) -> int:
        """Devices of a node's own pools that no claim has, of plain ones."""
        taken = {device for claim in self._all_claims() for device in devices_of(allocation_of(claim))}
        return sum(
            _key(each, device) not in taken
            for each in self._view.objects(SLICES)
            if each["spec"].get("nodeName") == node and not each["metadata"].get("deletionTimestamp")
            for device in devices(each)
        )

    # -- claims ------------------------------------------------------------------------------------------

    def _judge_claim(self, commit: Commit) -> None:
        meta, at = commit.obj["metadata"], commit.at
        before, after = allocation_of(commit.before), allocation_of(commit.obj)
        if commit.type == "DELETED":
            after = {}
            self._allocated.pop(meta["uid"], None)
            if owner := self._living_owner(commit.obj):
                self._findings.violated(at, f"the claim {meta['name']} of {owner} was deleted")
        if before and after and devices_of(before) != devices_of(after):
            self._findings.violated(at, f"the claim {meta['name']} was allocated to other devices")
        if after and not before:
            self._orders += 1
            self._allocated[meta["uid"]] = self._orders, self._first_scheduler(commit.obj)
            if commit.author.name:
                for problem in self._unwanted(commit.obj, after, at):
                    self._findings.violated(at, f"the claim {meta['name']} was allocated {problem}")
        if before and not after and commit.before is not None:
            for pod in self._users(commit.before):
                self._findings.violated(
                    at,
                    f"the claim {meta['name']} lost its devices while {pod['metadata']['name']} has a node",
                )
        for device in {*devices_of(before), *devices_of(after)}:
            if len(list(self._holders(device))) < 2 or not self._is_overdrawn(device, self._all_claims()):
                self._since.pop(device, None)
            elif device not in self._since:
                self._since[device] = at
                self.contested += 1

    def _unwanted(self, claim: Obj, allocation: Obj, at: float) -> Iterator[str]:
        """How an allocation differs from what a claim asks for; attributes are not evaluated here."""
        asked = dict(_asked(claim))
        given = Counter(each["request"] for each in (allocation.get("devices") or {}).get("results") or ())
        for name in sorted(given.keys() - asked.keys()):
            yield f"devices for {name}, which it does not ask for"
        chosen: dict[str, list[str]] = {}
        for name in asked:
            chosen.setdefault(name.partition("/")[0], []).extend([name] if given[name] else [])
        for request, names in chosen.items():
            if len(names) != 1:
                yield f"devices for {len(names)} alternatives of {request}"
            for name in names:
                count = asked[name].get("count", 1)
                if asked[name].get("allocationMode", "ExactCount") == "ExactCount" and given[name] != count:
                    yield f"{given[name]} devices for {name}, which asks for {count}"
        for result in results_of(allocation):
            tolerations = asked.get(result["request"], {}).get("tolerations") or ()
            for taint in self._lasting_taints(_device(result), at):
                if not any(is_tolerated(taint, each) for each in tolerations):
                    yield f"{'/'.join(_device(result))}, whose taint {taint['key']} it does not tolerate"

    def _lasting_taints(self, device: Device, at: float) -> Iterator[Obj]:
        """Those that keep pods away in all that a watch may show, in the latest generation of its pool."""
        for slice_ in self._slices(device):
            key = "", slice_["metadata"]["name"]
            seen = [_taints(each, device) for each in self._view.recent(SLICES, key, at)]
            yield from (taint for taint in seen[-1] if all(taint in each for each in seen))

    def _report_contested(self, at: float) -> None:
        for device, since in self._since.items():
            if at - since > self._contested_s and device not in self._told:
                self._told.add(device)
                names = ", ".join(each["metadata"]["name"] for each in self._holders(device))
                problem = f"{'/'.join(device)} was allocated twice for long: {names}"
                if self._is_theirs(self._holders(device)):
                    self.theirs.append(f"{at:.3f} {problem}")
                else:
                    self._findings.violated(at, problem)

    def _first_scheduler(self, claim: Obj) -> str:
        """For whose pod a claim was allocated; "" where that is not known."""
        for consumer in (claim.get("status") or {}).get("reservedFor") or ():
            pod = self._view.find("pods", claim["metadata"].get("namespace") or "", consumer["name"])
            return "" if pod is None or pod["metadata"]["uid"] != consumer["uid"] else scheduler_of(pod)
        return ""

    def _is_theirs(self, claims: Iterable[Obj]) -> bool:
        """Whether the one of these claims that was allocated last was so by one of the others."""
        orders = [self._allocated.get(each["metadata"]["uid"], (0, "")) for each in claims]
        return max(orders, default=(0, ""))[1] in self._others

    def _all_claims(self) -> list[Obj]:
        return list(self._view.objects(CLAIMS))

    def _holders(self, device: Device) -> Iterator[Obj]:
        """Claims that have a device."""
        return (each for each in self._view.objects(CLAIMS) if device in devices_of(allocation_of(each)))

    def _living_owner(self, claim: Obj) -> str:
        """The pod that a claim was made for, if it still needs the claim."""
        namespace = claim["metadata"].get("namespace") or ""
        for owner in claim["metadata"].get("ownerReferences") or ():
            pod = self._view.find("pods", namespace, owner["name"])
            is_there = owner.get("kind") == "Pod" and pod and pod["metadata"]["uid"] == owner["uid"]
            if pod and is_there and not is_over(pod) and not is_leaving(pod):
                return str(owner["name"])
        return ""

    def _users(self, claim: Obj) -> list[Obj]:
        """Pods with a node that a claim is reserved for, or their PodGroup."""
        namespace = claim["metadata"].get("namespace") or ""
        found = []
        for consumer in (claim.get("status") or {}).get("reservedFor") or ():
            pod = self._view.find("pods", namespace, consumer["name"])
            pods = self._view.objects("pods") if consumer["resource"] == "podgroups" else [pod] if pod else []
            found += [
                each
                for each in pods
                if (each["metadata"].get("namespace") or "") == namespace
                and _is_for(consumer, each)
                and node_of(each)
                and not is_over(each)
            ]
        return found

    # -- bindings ----------------------------------------------------------------------------------------

    def _unfit(self, pod: Obj, node: str, at: float) -> Iterator[str]:
        """Why a pod must not have that node; what others are wrong in is noted."""
        meta = pod["metadata"]
        own = []
        for name in claim_names(pod):
            claim = self._view.find(CLAIMS, meta.get("namespace") or "", name)
            allocation = allocation_of(claim)
            if claim is None or not allocation:
                yield f"its claim {name} is not allocated"
                continue
            if not self._is_reached(allocation, node):
                yield f"its claim {name} is not allocated there"
            reserved = (claim.get("status") or {}).get("reservedFor") or ()
            if not any(_is_for(each, pod) for each in reserved):
                yield f"its claim {name} is not reserved for it"
            own.append(claim)
        uids = {each["metadata"]["uid"] for each in own}
        used = [
            each for each in self._all_claims() if each["metadata"]["uid"] not in uids and self._users(each)
        ]
        for device in {device for each in own for device in devices_of(allocation_of(each))}:
            if problem := self._is_overdrawn(device, [*own, *used]):
                sharing = [each for each in [*own, *used] if device[:2] in _pools_of(each)]
                same = [each for each in sharing if device in devices_of(allocation_of(each))]
                if self._is_theirs(same if len(same) > 1 else sharing):
                    self.theirs.append(f"{at:.3f} {pod['metadata']['name']} on {node}: {problem}")
                else:
                    yield problem

    def _is_reached(self, allocation: Obj, node: str) -> bool:
        selector = allocation.get("nodeSelector")
        if not selector:
            return True
        labels = ((self._view.find("nodes", "", node) or {}).get("metadata") or {}).get("labels") or {}
        return any(_term_holds(term, node, labels) for term in selector["nodeSelectorTerms"])

    def _is_overdrawn(self, device: Device, claims: Iterable[Obj]) -> str:
        """What these claims have too much of, about one device; "" where nothing."""
        results = [
            (claim["metadata"]["name"], result)
            for claim in claims
            for result in results_of(allocation_of(claim))
        ]
        mine = [(name, each) for name, each in results if _device(each) == device]
        names = ", ".join(sorted({name for name, _ in mine}))
        whole = [each for _, each in mine if not each.get("shareID")]
        if whole and len(mine) > 1:
            return f"{'/'.join(device)} is in use twice: {names}"
        published = {_key(slice_, each): each for slice_ in self._slices(device) for each in devices(slice_)}
        has = published.get(device, {}).get("capacity") or {}
        for name, amount in has.items():
            taken = sum(milli((each.get("consumedCapacity") or {}).get(name, "0")) for _, each in mine)
            if taken > milli(amount["value"]):
                return f"{taken} of {milli(amount['value'])} milli {name} of {'/'.join(device)}: {names}"
        return self._counters_overdrawn(device, published, {_device(each) for _, each in results})

    def _counters_overdrawn(self, device: Device, published: dict[Device, Obj], taken: set[Device]) -> str:
        sets = {
            (one["name"], name): milli(counter["value"])
            for slice_ in self._slices(device)
            for one in slice_["spec"].get("sharedCounters") or ()
            for name, counter in one["counters"].items()
        }
        drawn: dict[tuple[str, str], int] = {}
        for other in taken & published.keys():
            for counter, amount in _draws(published[other]).items():
                drawn[counter] = drawn.get(counter, 0) + amount
        for counter in _draws(published.get(device, {})):
            if drawn.get(counter, 0) > sets.get(counter, 0):
                return f"{drawn[counter]} of {sets.get(counter, 0)} milli of the counter {'/'.join(counter)}"
        return ""

    def _slices(self, device: Device) -> list[Obj]:
        """The latest generation of a device's pool."""
        found = [
            each
            for each in self._view.objects(SLICES)
            if (each["spec"]["driver"], each["spec"]["pool"]["name"]) == device[:2]
        ]
        latest = max((each["spec"]["pool"]["generation"] for each in found), default=0)
        return [each for each in found if each["spec"]["pool"]["generation"] == latest]


def scheduler_of(pod: Obj) -> str:
    """The name of the scheduler that is to bind it."""
    return str(pod["spec"].get("schedulerName") or "")


def _pools_of(claim: Obj) -> set[tuple[str, str]]:
    """Drivers and pools of its devices."""
    return {device[:2] for device in devices_of(allocation_of(claim))}


def claim_names(pod: Obj) -> list[str]:
    """The names of a pod's claims, as far as they were made."""
    made = {
        each["name"]: each.get("resourceClaimName")
        for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    found = []
    for each in pod["spec"].get("resourceClaims") or ():
        name = each.get("resourceClaimName") or made.get(each["name"], "")
        if name is not None:
            found.append(name)
    return found


def allocation_of(claim: Obj | None) -> Obj:
    """What a claim has; empty for nothing."""
    found: Obj = ((claim or {}).get("status") or {}).get("allocation") or {}
    return found


def results_of(allocation: Obj) -> list[Obj]:
    """The devices of an allocation that others cannot have as well."""
    results = (allocation.get("devices") or {}).get("results") or ()
    return [each for each in results if not each.get("adminAccess")]


def _asked(claim: Obj) -> Iterator[tuple[str, Obj]]:
    """What a claim asks for, by the names that results have; one of several alternatives is enough."""
    for each in ((claim.get("spec") or {}).get("devices") or {}).get("requests") or ():
        if exactly := each.get("exactly"):
            yield each["name"], exactly
        for one in each.get("firstAvailable") or ():
            yield f"{each['name']}/{one['name']}", one


def _taints(slice_: Obj | None, device: Device) -> list[Obj]:
    """Those of a device that keep pods away; none where it is not in a slice."""
    found = [each for each in devices(slice_) if _key(slice_, each) == device] if slice_ else []
    return [taint for each in found for taint in each.get("taints") or () if taint["effect"] != "None"]


def devices_of(allocation: Obj) -> set[Device]:
    """Their names."""
    return {_device(each) for each in results_of(allocation)}


def devices(slice_: Obj) -> Iterable[Obj]:
    """Those of a slice."""
    found: Iterable[Obj] = slice_["spec"].get("devices") or ()
    return found


def _key(slice_: Obj, device: Obj) -> Device:
    return slice_["spec"]["driver"], slice_["spec"]["pool"]["name"], device["name"]


def _device(result: Obj) -> Device:
    return result["driver"], result["pool"], result["device"]


def _draws(device: Obj) -> dict[tuple[str, str], int]:
    return {
        (one["counterSet"], name): milli(counter["value"])
        for one in device.get("consumesCounters") or ()
        for name, counter in one["counters"].items()
    }


def _term_holds(term: Obj, node: str, labels: Obj) -> bool:
    fields = [("metadata.name", each, node) for each in term.get("matchFields") or ()]
    expressions = [
        (each["key"], each, labels.get(each["key"])) for each in term.get("matchExpressions") or ()
    ]
    return all(_holds(each, value) for _, each, value in (*fields, *expressions))


def _holds(requirement: Obj, value: str | None) -> bool:
    values = requirement.get("values") or ()
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False


def _is_for(consumer: Obj, pod: Obj) -> bool:
    """Whether a consumer of a claim is the pod, or the PodGroup of the core API that it names."""
    if consumer["resource"] == "podgroups" and consumer.get("apiGroup") == "scheduling.k8s.io":
        return bool(consumer["name"] == (pod["spec"].get("schedulingGroup") or {}).get("podGroupName"))
    return bool(consumer["uid"] == pod["metadata"]["uid"])
