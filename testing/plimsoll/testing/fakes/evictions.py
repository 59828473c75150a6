"""Fakes of the ports that move pods: evictions, closed nodes, rollouts, records."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from plimsoll.model.kinds.deployment import (
    SURGED,
    Deployment,
    FieldManager,
    OwnedFields,
    OwnedLeaf,
    OwnedSpec,
)
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.testing.fakes.pod_writes import DONE

OF_REPLICAS = OwnedFields(spec=OwnedSpec(replicas=OwnedLeaf()))

REFUSED = WriteResult(WriteOutcome.REFUSED, "forbidden")


class FakeEvictor:
    """Accepts every eviction unless a test sets another result.

    Attributes:
        evicted: Names of the evicted pods, in order.
        answers: Results of the next evictions, one each; then DONE.
        stands: Result of each lookup of a pod.
        when_done: Called with each pod whose eviction was accepted.
    """

    def __init__(self, *answers: WriteResult) -> None:
        self.evicted: list[str] = []
        self.answers = list(answers)
        self.stands = DONE
        self.when_done: Callable[[Pod], None] = lambda _: None

    async def evict(self, pod: Pod) -> WriteResult:
        """Record the name of an evicted pod."""
        answer = self.answers.pop(0) if self.answers else DONE
        if answer.is_done:
            self.evicted.append(pod.name)
            self.when_done(pod)
        return answer

    async def standing(self, pod: Pod) -> WriteResult:  # noqa: ARG002 - the port's shape
        """The result that the test has set."""
        return self.stands


class FakeNodeCloser:
    """Closes and reopens nodes immediately.

    Attributes:
        done: Writes in order: ``("close", node)``, ``("avoid", node)`` or ``("reopen", node)``.
        answer: The result of a write.
        when_done: Called with each accepted write.
    """

    def __init__(self, answer: WriteResult = DONE) -> None:
        self.done: list[tuple[str, str]] = []
        self.answer = answer
        self.when_done: Callable[[str, str], None] = lambda _verb, _node: None

    async def close(self, node: str) -> WriteResult:
        """Close a node."""
        return self._do("close", node)

    async def avoid(self, node: str) -> WriteResult:
        """Have pods avoid a node."""
        return self._do("avoid", node)

    async def reopen(self, node: str) -> WriteResult:
        """Reopen a node."""
        return self._do("reopen", node)

    def _do(self, verb: str, node: str) -> WriteResult:
        if self.answer.is_done:
            self.done.append((verb, node))
            self.when_done(verb, node)
        return self.answer


class FakeCosts:
    """Writes costs of deletion immediately.

    Attributes:
        done: Writes in order: the pod as ``namespace/name``, and the policy; "" takes the cost away.
        answer: The result of a write.
        when_done: Called with the uid and the policy of each accepted write.
    """

    def __init__(self, answer: WriteResult = DONE) -> None:
        self.done: list[tuple[str, str]] = []
        self.answer = answer
        self.when_done: Callable[[str, str], None] = lambda _uid, _policy: None

    async def want_gone(self, namespace: str, name: str, uid: str, policy: str) -> WriteResult:
        """Write the cost of a pod, or take it away."""
        if self.answer.is_done:
            self.done.append((f"{namespace}/{name}", policy))
            self.when_done(uid, policy)
        return self.answer


class FakeRollouts:
    """Keeps Deployments in memory; a mark is a new generation, as any change of the template is.

    Attributes:
        deployments: The Deployments.
        marks: The written marks, in order.
        answers: Results of the next marks, one each; then DONE.
        reading: The result of reads and lists.
        autoscalers: The HorizontalPodAutoscaler of each Deployment that has one; None if that is refused.
        scales: The written numbers of replicas, in order.
        leaving: The pods that are deleted first, by ``namespace/name``.
        preferring: The result of saying so.
        when_marked: Called with the name and the mark of each marked Deployment.
    """

    def __init__(self, *deployments: Deployment) -> None:
        self.deployments = {each.metadata.name: each for each in deployments}
        self.marks: list[str | None] = []
        self.answers: list[WriteResult] = []
        self.reading = DONE
        self.autoscalers: Mapping[str, str] | None = {}
        self.scales: list[int] = []
        self.leaving: set[str] = set()
        self.preferring = DONE
        self.when_marked: Callable[[str, str | None], None] = lambda _name, _mark: None

    async def list(self) -> tuple[WriteResult, Sequence[Deployment]]:
        """List all Deployments."""
        return self.reading, list(self.deployments.values()) if self.reading.is_done else ()

    async def others(self) -> tuple[Sequence[Deployment], Mapping[str, str]]:
        """No objects of other kinds: the test keeps them among the Deployments."""
        return (), {}

    async def read(
        self, namespace: str, name: str, kind: str = "Deployment"
    ) -> tuple[WriteResult, Deployment | None]:
        """Read one Deployment."""
        if not self.reading.is_done:
            return self.reading, None
        found = self.deployments.get(name)
        if found is None or found.metadata.namespace != namespace or found.kind != kind:
            return WriteResult(WriteOutcome.GONE, f'deployments.apps "{name}" not found'), None
        return DONE, found

    async def mark(self, deployment: Deployment, mark: str | None) -> WriteResult:
        """Write a mark, unless the version is outdated or the test sets another result."""
        answer = self.answers.pop(0) if self.answers else DONE
        present = self.deployments[deployment.metadata.name]
        if answer.is_done and present.metadata.resource_version != deployment.metadata.resource_version:
            answer = WriteResult(WriteOutcome.CONFLICT, "the object has been modified")
        if answer.is_done:
            self.do_mark(deployment.metadata.name, mark)
        return answer

    async def autoscaled(self, namespace: str = "") -> tuple[WriteResult, Mapping[str, str]]:  # noqa: ARG002 - a port
        """The HorizontalPodAutoscalers that the test sets, whatever the namespace."""
        return (DONE, self.autoscalers) if self.autoscalers is not None else (REFUSED, {})

    async def scale(self, deployment: Deployment, replicas: int, manager: str) -> WriteResult:
        """Write a number of replicas, unless the version is outdated or the test sets another result."""
        answer = self.answers.pop(0) if self.answers else DONE
        present = self.deployments[deployment.metadata.name]
        if answer.is_done and present.metadata.resource_version != deployment.metadata.resource_version:
            answer = WriteResult(WriteOutcome.CONFLICT, "the object has been modified")
        if answer.is_done:
            self.do_scale(deployment.metadata.name, replicas, manager)
        return answer

    def do_scale(self, name: str, replicas: int, manager: str) -> None:
        """Apply a number of replicas, as any client would; its manager is the only one."""
        present = self.deployments[name]
        wrote = FieldManager(manager=manager, operation="Update", subresource="scale", fields=OF_REPLICAS)
        metadata = msgspec.structs.replace(
            present.metadata,
            managed_fields=(wrote,),
            generation=present.metadata.generation + 1,
            resource_version=str(int(present.metadata.resource_version or 0) + 1),
        )
        spec = msgspec.structs.replace(present.spec, replicas=replicas)
        self.deployments[name] = msgspec.structs.replace(present, metadata=metadata, spec=spec)
        self.scales.append(replicas)

    async def prefer(self, namespace: str, name: str, uid: str, *, leaves: bool) -> WriteResult:  # noqa: ARG002 - a port
        """Note which pods leave first, by ``namespace/name``."""
        if self.preferring.is_done:
            (self.leaving.add if leaves else self.leaving.discard)(f"{namespace}/{name}")
        return self.preferring

    def do_mark(self, name: str, mark: str | None) -> None:
        """Apply a mark, regardless of the result that its writer receives."""
        self.change(name, SURGED, mark)
        self.marks.append(mark)
        self.when_marked(name, mark)

    def roll_out(self, name: str) -> None:
        """Complete the rollout, as the controller would."""
        present = self.deployments[name]
        status = msgspec.structs.replace(present.status, observed_generation=present.metadata.generation)
        self.deployments[name] = msgspec.structs.replace(present, status=status)

    def change(self, name: str, annotation: str, value: str | None) -> None:
        """Change an annotation of the template, as another client would."""
        present = self.deployments[name]
        template = dict(present.spec.template)
        metadata = dict(template.get("metadata") or {})
        annotations = {**(metadata.get("annotations") or {}), annotation: value}
        kept = {key: each for key, each in annotations.items() if each is not None}
        template["metadata"] = {**metadata, "annotations": kept}
        generation = present.metadata.generation + 1
        self.deployments[name] = msgspec.structs.replace(
            present,
            metadata=msgspec.structs.replace(
                present.metadata, generation=generation, resource_version=str(generation)
            ),
            spec=msgspec.structs.replace(present.spec, template=template),
        )


class FakeRecords:
    """Keeps Eviction records in memory.

    Attributes:
        documents: Records by ``namespace/name``.
        history: Phases by record name, in the order written.
        managers: First writer of each phase, by record name and phase; "" for the client.
        created_at: ``metadata.creationTimestamp`` of new records.
        created: The number of records that were created.
        answer: The result of a write.
    """

    def __init__(self, *documents: Mapping[str, Any]) -> None:
        self.documents: dict[str, dict[str, Any]] = {
            f"{each['metadata']['namespace']}/{each['metadata']['name']}": dict(each) for each in documents
        }
        self.history: dict[str, list[str]] = {}
        self.managers: dict[tuple[str, str], str] = {}
        self.created_at = "2026-01-01T00:00:00Z"
        self.answer = DONE
        self.created = 0

    async def create(self, document: Mapping[str, Any]) -> WriteResult:
        """Add a new record."""
        metadata = document["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        if not self.answer.is_done:
            return self.answer
        if key in self.documents:
            return WriteResult(WriteOutcome.CONFLICT, f"{key} exists already")
        self.created += 1
        uid = f"uid-{metadata['name']}-{self.created}"
        stamped = {**metadata, "creationTimestamp": self.created_at, "uid": uid, "resourceVersion": "1"}
        self.documents[key] = {**document, "metadata": stamped}
        self._note(metadata["name"], document.get("status") or {})
        return replace(DONE, uid=uid, version="1")

    async def write_status(
        self, namespace: str, name: str, status: Mapping[str, Any], *, version: str, manager: str = ""
    ) -> WriteResult:
        """Replace the status of a version; ``managers`` keeps the first writer of each phase."""
        document = self.documents.get(f"{namespace}/{name}")
        if not self.answer.is_done:
            return self.answer
        if document is None:
            return WriteResult(WriteOutcome.GONE, f"there is no record {namespace}/{name}")
        stored = _stored(document)
        if version not in ("", stored.version):
            return WriteResult(WriteOutcome.CONFLICT, f"{namespace}/{name} has version {stored.version}")
        version = str(int(stored.version or 0) + 1)
        document["status"] = dict(status)
        document["metadata"] = {**document["metadata"], "resourceVersion": version}
        self._note(name, status)
        self.managers.setdefault((name, str(status.get("phase"))), manager)
        return replace(stored, version=version)

    async def look_up(self, namespace: str, name: str) -> WriteResult:
        """A record's uid and version."""
        document = self.documents.get(f"{namespace}/{name}")
        if document is None:
            return WriteResult(WriteOutcome.GONE, f"there is no record {namespace}/{name}")
        return _stored(document)

    async def delete(self, namespace: str, name: str, *, uid: str = "") -> WriteResult:
        """Delete a record."""
        document = self.documents.get(f"{namespace}/{name}")
        if document is None:
            return WriteResult(WriteOutcome.GONE, f"there is no record {namespace}/{name}")
        if uid not in ("", _stored(document).uid):
            return WriteResult(WriteOutcome.CONFLICT, f"{namespace}/{name} is another record")
        del self.documents[f"{namespace}/{name}"]
        return DONE

    async def list(self) -> tuple[WriteResult, Sequence[Mapping[str, Any]]]:
        """List all records."""
        return self.answer, list(self.documents.values())

    def _note(self, name: str, status: Mapping[str, Any]) -> None:
        self.history.setdefault(name, []).append(str(status.get("phase")))


def _stored(document: Mapping[str, Any]) -> WriteResult:
    meta = document["metadata"]
    return replace(DONE, uid=meta.get("uid", ""), version=meta.get("resourceVersion", ""))
