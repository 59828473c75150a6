"""Finds the Deployments that run Plimsoll, with the lease of each."""

from collections.abc import Iterable

from msgspec import Struct

from plimsoll.preflight.workloads import RunningWorkload

NAME_LABEL = "app.kubernetes.io/name"


class Installation(Struct, frozen=True):
    """A Deployment that runs Plimsoll, with its lease."""

    workload: RunningWorkload
    lease: tuple[str, str]
    elects: bool
    operator: str = ""  #: the name by which it knows its policies

    @property
    def account(self) -> tuple[str, str]:
        """Namespace and name of its ServiceAccount."""
        return self.workload.namespace, self.workload.account


def installations(workloads: Iterable[RunningWorkload]) -> tuple[Installation, ...]:
    """The Deployments that run Plimsoll."""
    found = []
    for each in workloads:
        is_ours = each.labels.get(NAME_LABEL) == "plimsoll" or "plimsoll" in each.image_words | each.programs
        if each.kind == "Deployment" and is_ours:
            lease = (
                each.flag("--leader-elect-resource-namespace") or each.namespace,
                each.flag("--leader-elect-resource-name") or "plimsoll",
            )
            found.append(
                Installation(
                    each, lease, each.flag("--leader-elect") != "false", each.flag("--operator-name")
                )
            )
    return tuple(found)
