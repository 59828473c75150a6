"""Returns plans from another process: pods by their uids, all else pickled.

The receiving process resolves uids in the planned cluster, so a move has the identical pod as if it had been
planned here.
"""

import io
import pickle
from collections.abc import Iterable
from typing import Any

from plimsoll.framework import PluginError, PodInfo
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.pod_info import Holder
from plimsoll.model.names import PodUid
from plimsoll.planning.strategy_run import TIMER


class PlanParcel:
    """Packs and unpacks results about one cluster.

    Args:
        content: The kind of the result, in a word.
        cluster: The cluster of the plan.
        unplaced: Pods without a place, as the plan knows them.
    """

    def __init__(self, content: str, cluster: Cluster, unplaced: Iterable[PodInfo] = ()) -> None:
        self.content = content
        self._cluster = cluster
        self._unplaced = {pod.uid: pod for pod in unplaced}

    @property
    def pods(self) -> int:
        """How many pods are placed."""
        return len(self._cluster.pods)

    def pack(self, made: object) -> bytes:
        """In the computing process: pack the result, and the strategies' times."""
        timer = TIMER.get()
        seconds = {} if timer is None else timer.seconds
        file = io.BytesIO()
        _Packer(self, file).dump((made, seconds))
        return file.getvalue()

    def unpack(self, parcel: bytes) -> object:
        """In the receiving process: unpack; the timer of the context gets the times."""
        made, seconds = _Unpacker(self, io.BytesIO(parcel)).load()
        timer = TIMER.get()
        if timer is not None:
            timer.seconds.update(seconds)
        return made

    def known(self, uid: PodUid) -> PodInfo | None:
        """A pod that both processes know."""
        return self._cluster.pods.get(uid) or self._unplaced.get(uid)

    def info(self, pod: Pod, stands_in_for: Holder | None) -> PodInfo:
        """A pod that only the other process knew."""
        return self._cluster.templates.info(pod, stands_in_for)


class _Packer(pickle.Pickler):
    """Pickles a result; pods that both processes know are replaced by their uids."""

    def __init__(self, parcel: PlanParcel, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._parcel = parcel

    def persistent_id(self, obj: Any) -> tuple[str, object] | None:
        """The replacement of a pod or a failure; None for all else, which is pickled."""
        if isinstance(obj, PluginError):  # without attributes of third parties, which may not be picklable
            return "failure", (obj.plugin, obj.point, obj.problem, obj.trace)
        if not isinstance(obj, PodInfo):
            return None
        if self._parcel.known(obj.uid) is obj:
            return "known", obj.uid
        return "new", (obj.pod, obj.stands_in_for)


class _Unpacker(pickle.Unpickler):
    def __init__(self, parcel: PlanParcel, file: io.BytesIO) -> None:
        super().__init__(file)
        self._parcel = parcel

    def persistent_load(self, pid: tuple[str, Any]) -> PodInfo | PluginError:
        """The pod or failure of a replacement."""
        kind, said = pid
        if kind == "failure":
            return PluginError(*said)
        found = self._parcel.known(said) if kind == "known" else self._parcel.info(*said)
        if found is None:
            raise pickle.UnpicklingError(f"pod {said} is not in the cluster that was planned for")
        return found
