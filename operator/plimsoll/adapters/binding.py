"""POST pods/binding."""

from plimsoll.adapters.answering import answered
from plimsoll.adapters.session import Session
from plimsoll.control.ports import Answer
from plimsoll.model.pod import Pod


class PodBinder:
    """Binds pods through the API server."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def bind(self, pod: Pod, node: str) -> Answer:
        """Bind this very pod: the uid keeps a later pod of the same name unbound."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding"
        return await answered(self._session.request("POST", path, body))
