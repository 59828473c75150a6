"""Judges what a managed cloud changes for an installation; the cloud is known by labels of its nodes.

A managed control plane runs a scheduler, and often an autoscaler, that leave no trace in the cluster. What
they do is concluded from the cloud, so such findings are likely and not certain.
Sources: documentation of EKS, GKE, AKS and OpenShift; docs/how-to/run-on-eks.md and its siblings.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from plimsoll.model.counted import agreeing, counted
from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER
from plimsoll.preflight.findings import Area, Certainty, Finding, Level, Unread
from plimsoll.preflight.other_schedulers import DetectedProgram, ProgramActivity, ProgramKind


class Cloud(Struct, frozen=True):
    """A managed Kubernetes.

    Attributes:
        prefixes: Beginnings of label keys that its nodes have, and no others.
        autoscaler: What adds and removes nodes there, out of sight.
    """

    name: str
    page: str
    prefixes: tuple[str, ...]
    autoscaler: str


CLOUDS = (
    Cloud("EKS", "docs/how-to/run-on-eks.md", ("eks.amazonaws.com/",), "Karpenter of EKS Auto Mode"),
    Cloud("GKE", "docs/how-to/run-on-gke.md", ("cloud.google.com/gke-",), "cluster-autoscaler of GKE"),
    Cloud("AKS", "docs/how-to/run-on-aks.md", ("kubernetes.azure.com/",), "cluster-autoscaler of AKS"),
    Cloud("OpenShift", "docs/how-to/run-on-openshift.md", ("node.openshift.io/",), ""),
)
"""OpenShift runs on the others' machines as well: it comes last and counts before them."""

_NODE = "Node "


def judged_cloud(
    keys: Mapping[str, Sequence[str]] | Unread, seen: Collection[DetectedProgram], doing: ProgramActivity
) -> Iterator[Finding]:
    """Findings about the cloud of the nodes; nothing on a cluster of another kind.

    Args:
        keys: Annotations and labels by object; those of nodes count.
        seen: The programs at work that left a trace.
        doing: What our policies decide.
    """
    if isinstance(keys, Unread):
        return  # said by the check of our own keys
    nodes = [written for name, written in keys.items() if name.startswith(_NODE)]
    found = [
        (each, sum(any(key.startswith(each.prefixes) for key in node) for node in nodes)) for each in CLOUDS
    ]
    cloud, count = next(((each, number) for each, number in reversed(found) if number), (None, 0))
    if cloud is None:
        return
    subject = f"cloud {cloud.name}"
    yield Finding(
        Area.SCHEDULERS,
        Level.OK,
        subject,
        f"{counted(count, 'node')} {agreeing(count, 'has', 'have')} its labels;"
        f" what is different there: {cloud.page}",
        certainty=Certainty.LIKELY,
    )
    kinds = {each.program.work for each in seen}
    serving = doing.serves.get(DEFAULT_SCHEDULER)
    if serving is not None and ProgramKind.PLACES not in kinds:
        yield Finding(
            Area.SCHEDULERS,
            Level.ERROR,
            subject,
            f"its control plane runs kube-scheduler out of sight, and policy {serving} serves"
            f" {DEFAULT_SCHEDULER} too",
            f"give policy {serving} another schedulerName, and adopt pods: {cloud.page}",
            Certainty.LIKELY,
        )
    if doing.consolidates and cloud.autoscaler and ProgramKind.SCALES not in kinds:
        names = ", ".join(doing.consolidates)
        policies = agreeing(len(doing.consolidates), "policy", "policies")
        yield Finding(
            Area.SCHEDULERS,
            Level.WARNING,
            subject,
            f"{cloud.autoscaler} leaves no trace in the cluster; if it is on, it empties nodes, and"
            f" {policies} {names} too",
            f"let one of them consolidate: {cloud.page}",
            Certainty.LIKELY,
        )
