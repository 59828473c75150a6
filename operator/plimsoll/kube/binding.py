"""POST pods/binding; and where a pod is, when the answer to that was lost."""

import orjson

from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session
from plimsoll.kube.session.write_results import answer_of, answered
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import WriteOutcome, WriteResult


class PodBinder:
    """Binds pods through the API server."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def bind(self, pod: Pod, node: str) -> WriteResult:
        """Bind this very pod: the uid keeps a later pod of the same name unbound."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding"
        return await answered(self._session.request("POST", path, body))

    async def node_of(self, pod: Pod) -> tuple[WriteResult, str]:
        """Read the pod back; a list of one, which takes no right beyond those of the watch.

        Without a resourceVersion the server answers from what is stored, not from what it remembers.
        """
        path = f"/api/v1/namespaces/{pod.namespace}/pods"
        try:
            content = await self._session.request(
                "GET", path, params={"fieldSelector": f"metadata.name={pod.name}"}
            )
        except APIError as exc:
            return answer_of(exc), ""
        for found in orjson.loads(content).get("items") or ():
            if found["metadata"].get("uid") == pod.uid:
                return WriteResult(WriteOutcome.DONE), str(found.get("spec", {}).get("nodeName") or "")
        return WriteResult(WriteOutcome.GONE, f'pods "{pod.name}" not found'), ""
