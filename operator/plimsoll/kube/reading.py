"""GET a pod, every field of it: what an HTTP extender is shown, and decisions do not keep."""

import msgspec

from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session
from plimsoll.kube.session.write_results import answer_of
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import WriteOutcome, WriteResult

#: Seconds; a pod's attempt waits for it.
READ_TIMEOUT_S = 5.0


class _Meta(msgspec.Struct):
    uid: str = ""


class _Identified(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class PodDocuments:
    """Reads pods from the API server."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def read(self, pod: Pod) -> tuple[WriteResult, bytes]:
        """The document of this very pod; GONE when another one has its name."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        try:
            content = await self._session.request("GET", path, timeout_s=READ_TIMEOUT_S)
            uid = msgspec.json.decode(content, type=_Identified).metadata.uid
        except APIError as exc:
            return answer_of(exc), b""
        except msgspec.MsgspecError as exc:
            return WriteResult(WriteOutcome.UNKNOWN, f"GET {path}: the answer cannot be read: {exc}"), b""
        if uid != pod.uid:
            return WriteResult(WriteOutcome.GONE, f"pod {pod.key} with uid {pod.uid} is gone"), b""
        return WriteResult(WriteOutcome.DONE), content
