"""AdministratorDeeds are what administrators do: to policies, budgets and records of evictions."""

from __future__ import annotations

from roadstead.values.copies import copied
from roadstead.values.resources import Obj
from roadstead.values.status_errors import StatusError
from simulation.cluster import POLICIES, RECORDS
from simulation.deeds.scene import PASSING_S, Scene, Way
from simulation.faults import FaultKind
from simulation.refusals import Right

BUDGETS = "poddisruptionbudgets.policy"
FINALIZER = "simulated.test/held"

#: Rights that are taken away together: verb ("" for all), group, resource.
RIGHTS: tuple[tuple[Right, ...], ...] = (
    (("", "", "pods/binding"),),
    (("", "", "pods/eviction"),),
    (("", "", "pods/status"), ("", "events.k8s.io", "events")),
    (("", "plimsoll.dev", "evictions"),),
    (("", "plimsoll.dev", "evictions/status"), ("", "plimsoll.dev", "schedulingpolicies/status")),
    (("", "coordination.k8s.io", "leases"),),
    (("list", "", "nodes"),),
    (("list", "", "pods"),),
    (("list", "plimsoll.dev", "schedulingpolicies"), ("list", "policy", "poddisruptionbudgets")),
    (("list", "", "pods"), ("list", "", "nodes"), ("create", "", "pods/binding")),
)

#: Rights without which a scheduler does not see what others bind. Reading is tried again more and more
#: rarely, so once they are taken repeatedly it is blind for minutes. kube-scheduler then keeps its cache as
#: it was and binds on, and so do we; what it cannot see is no ground to judge its bindings. So these seconds
#: lie between two times.
SIGHT: frozenset[Right] = frozenset((("list", "", "pods"), ("list", "", "nodes")))
SIGHT_S = 180.0

#: For how long they are taken, so that it sees again within half a minute.
BLIND_S = (2.0, 15.0)

PHASES = (
    "Predicted",
    "Planned",
    "Evicting",
    "Evicted",
    "Surging",
    "Settled",
    "Returned",
    "Blocked",
    "Failed",
    "Cancelled",
)

FINISHED = ("Predicted", "Settled", "Returned", "Blocked", "Failed", "Cancelled")


class AdministratorDeeds:
    """Deeds of administrators.

    Attributes:
        ways: How each is done.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._api = scene.api
        self._random = scene.random
        self._blinded_at = -SIGHT_S
        self.ways: dict[FaultKind, Way] = {
            FaultKind.POLICY_EDITED: self._edit_policy,
            FaultKind.BUDGET_CHANGED: self._change_budget,
            FaultKind.RECORD_DELETED: self._delete_record,
            FaultKind.RECORD_STATUS_EDITED: self._edit_status,
            FaultKind.RECORD_ANNOTATED: self._annotate,
            FaultKind.RECORD_HELD: self._hold,
            FaultKind.RECORD_FORGED: self._forge,
            FaultKind.RIGHTS_TAKEN: self._take_rights,
        }

    def _edit_policy(self) -> bool:
        if self._random.random() < 0.5:
            found = self._scene.chosen(POLICIES)
            if found is None:
                return False
            found["metadata"].setdefault("labels", {})["edited"] = str(self._random.randrange(100))
            if "rebalancing" in found["spec"]:
                mode = self._random.choice(("DryRun", "Enforce"))
                found["spec"]["rebalancing"]["mode"] = mode
            self._api.update(POLICIES, found)
            return True
        serve = self._api.find(POLICIES, None, "serve")
        if serve is None:
            return False
        kept = {key: serve[key] for key in ("apiVersion", "spec")}
        self._api.delete(POLICIES, None, "serve")
        again = {**copied(kept), "metadata": {"name": "serve"}}
        again["spec"].pop("suspend", None)  # it may come when people resume nothing any more

        def create() -> None:
            try:
                self._api.create(POLICIES, again)
            except StatusError as error:
                if error.code in (403, 404):  # the definition is gone, or going
                    self._scene.later(create)

        self._scene.later(create)
        return True

    def _take_rights(self) -> bool:
        rights = self._scene.network.rights
        taken = self._random.choice(RIGHTS)
        spell = PASSING_S
        if not SIGHT.isdisjoint(taken):
            spell = BLIND_S
            now = self._scene.network.loop.time()
            if now < self._blinded_at + SIGHT_S:
                return False
            self._blinded_at = now
        rights.take(taken)
        if self._random.random() < 0.5:
            for replica in self._scene.replicas:
                self._scene.network.cut(replica.life.name)  # so that lists and watches are asked for again
        self._scene.later(lambda: rights.give_back(taken), spell)
        return True

    # -- budgets -------------------------------------------------------------------------------------------

    def _change_budget(self) -> bool:
        """Edit, delete or create one."""
        budget = self._scene.chosen(BUDGETS)
        drawn = self._random.random()
        if budget is None or drawn < 0.2:
            return self._create_budget()
        meta = budget["metadata"]
        if drawn < 0.4:
            self._api.delete(BUDGETS, meta["namespace"], meta["name"])
            return True
        budget["spec"].pop("minAvailable", None)
        budget["spec"]["maxUnavailable"] = self._random.choice((0, 1, 2))
        self._api.update(BUDGETS, budget)
        return True

    def _create_budget(self) -> bool:
        workload = self._scene.chosen("deployments.apps")
        if workload is None:
            return False
        spec = {"selector": workload["spec"]["selector"], "maxUnavailable": self._random.choice((0, 1))}
        meta = {"name": self._scene.named("budget"), "namespace": workload["metadata"]["namespace"]}
        self._api.create(BUDGETS, {"metadata": meta, "spec": copied(spec)})
        return True

    # -- records -------------------------------------------------------------------------------------------

    def _delete_record(self) -> bool:
        record = self._scene.chosen(RECORDS)
        if record is None:
            return False
        self._api.delete(RECORDS, record["metadata"]["namespace"], record["metadata"]["name"])
        return True

    def _edit_status(self) -> bool:
        """Of a move that is under way: the API server keeps the phase of a finished one."""
        record = self._scene.chosen(
            RECORDS, lambda one: (one.get("status") or {}).get("phase") not in FINISHED
        )
        if record is None:
            return False
        status = record.setdefault("status", {})
        status["phase"] = self._random.choice(PHASES)
        if self._random.random() < 0.3:
            record["status"] = {}
        self._api.update_status(RECORDS, record)
        return True

    def _annotate(self) -> bool:
        record = self._scene.chosen(RECORDS)
        if record is None:
            return False
        meta = record["metadata"]
        meta["annotations"] = {
            **(meta.get("annotations") or {}),
            "simulated.test/note": self._scene.named("n"),
        }
        labels = meta.get("labels") or {}
        # Somebody takes our labels away, or all of them.
        meta["labels"] = {} if self._random.random() < 0.3 else {**labels, "plimsoll.dev/policy": "other"}
        self._api.update(RECORDS, record)
        return True

    def _hold(self) -> bool:
        """Its deletion takes a while."""
        record = self._scene.chosen(RECORDS)
        if record is None:
            return False
        meta = record["metadata"]
        meta["finalizers"] = [FINALIZER]
        self._api.update(RECORDS, record)
        if self._random.random() < 0.7:
            self._api.delete(RECORDS, meta["namespace"], meta["name"])

        def let_go() -> None:
            held = copied(self._api.get(RECORDS, meta["namespace"], meta["name"]))
            held["metadata"]["finalizers"] = []
            self._api.update(RECORDS, held)

        self._scene.later(let_go)
        return True

    def _forge(self) -> bool:
        """For a pod that runs; perhaps with the status of a move that is under way."""
        pod = self._scene.chosen("pods", lambda one: one["spec"].get("nodeName"))
        if pod is None:
            return False
        meta = pod["metadata"]
        forged: Obj = {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "metadata": {"name": self._scene.named("forged"), "namespace": meta["namespace"]},
            "spec": {
                "pod": {key: meta[key] for key in ("namespace", "name", "uid")},
                "policy": "tidy",
                "strategy": "RemoveDuplicates",
                "mode": self._random.choice(("DryRun", "Enforce")),
                "reason": "somebody wants it",
                "fromNode": pod["spec"]["nodeName"],
            },
        }
        made = copied(self._api.create(RECORDS, forged))
        if self._random.random() < 0.6:
            made["status"] = {"phase": self._random.choice(PHASES)}
            self._api.update_status(RECORDS, made)
        return True
