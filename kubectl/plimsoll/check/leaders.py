"""Judges the leases of Plimsoll: existence, holder, renewal, version of the operator."""

from collections.abc import Iterable, Iterator, Sequence

from plimsoll.check.installations import Installation
from plimsoll.model.counted import counted
from plimsoll.ports.leases import Lease
from plimsoll.preflight.findings import Area, Finding, Level, Unread, unchecked
from plimsoll.preflight.leases import Leases, is_renewed, pod_of
from plimsoll.version import __version__

#: The name of our lease unless a Deployment sets another.
NAME = "plimsoll"


def our_leases(found: Leases, installed: Iterable[Installation]) -> tuple[tuple[str, str], ...]:
    """The leases of Plimsoll: those that Deployments name, and those with our name."""
    named = [each.lease for each in installed if each.elects]
    return tuple(dict.fromkeys((*named, *sorted(key for key in found if key[1] == NAME))))


def judged_leases(
    found: Leases | Unread, installed: Sequence[Installation] | Unread, now: float
) -> Iterator[Finding]:
    """Findings about the leader at the time ``now``, in seconds since the epoch."""
    if isinstance(found, Unread):
        yield unchecked(Area.LEASE, "lease", found)
        return
    known = () if isinstance(installed, Unread) else installed
    ours = our_leases(found, known)
    leading = [key for key in ours if key in found and is_renewed(found[key], now)]
    named = {each.lease: each.operator for each in known}
    operators = [named.get(key, "") for key in leading]
    for key in ours:
        deployments = [each for each in known if each.elects and each.lease == key]
        yield _judged(key, found.get(key), deployments, now)
    for each in known:
        if not each.elects:
            yield _without_election(each)
            leading += [each.account] * bool(each.workload.ready)
            operators += [each.operator] * bool(each.workload.ready)
    if not ours and not any(not each.elects for each in known):
        yield Finding(
            Area.LEASE,
            Level.WARNING,
            "lease",
            "no operator was found: no lease named plimsoll, and no Deployment that runs plimsoll",
            "install one (docs/install.md); policies have no effect until then",
        )
    leading = [key for key, name in zip(leading, operators, strict=True) if operators.count(name) > 1]
    if leading:
        names = ", ".join("/".join(each) for each in leading)
        yield Finding(
            Area.LEASE,
            Level.ERROR,
            "leases",
            f"{len(leading)} Plimsolls lead at the same time ({names}): they decide about the same pods, and"
            " neither knows the other's limits and budgets",
            "keep one of them: scale the others to 0, or give all the same"
            " --leader-elect-resource-name and --leader-elect-resource-namespace, or each an --operator-name"
            " and policies of its own",
        )


def _judged(
    key: tuple[str, str], lease: Lease | None, deployments: Sequence[Installation], now: float
) -> Finding:
    subject = f"lease {'/'.join(key)}"
    by = f" of {deployments[0].workload.text}" if deployments else ""
    idle = deployments and not deployments[0].workload.ready
    look = (
        f"read the log{by}" if not idle else f"{deployments[0].workload.text} has no ready pod: describe it"
    )
    if lease is None:
        message = f"no operator leads: the lease{by} does not exist"
        return Finding(Area.LEASE, Level.ERROR, subject, message, look)
    if not lease.holder:
        return Finding(Area.LEASE, Level.ERROR, subject, "no operator leads: the lease was released", look)
    age = max(0.0, now - lease.renewed)
    if not is_renewed(lease, now):
        message = f"no operator leads: {pod_of(lease.holder)} renewed the lease last {_age(age)} ago"
        return Finding(Area.LEASE, Level.ERROR, subject, f"{message}, by this machine's clock", look)
    version = next((each.workload.version for each in deployments if each.workload.version), "")
    held = f"{pod_of(lease.holder)} holds it and renewed it {_age(age)} ago"
    if version and version != __version__:
        return Finding(
            Area.LEASE,
            Level.WARNING,
            subject,
            f"{held}; its version is {version}, that of this command {__version__}",
            "use the same version: definitions and rights are compared with those of this command",
        )
    said = f", version {version}" if version else ", of a version that is not known"
    return Finding(Area.LEASE, Level.OK, subject, held + said)


def _without_election(each: Installation) -> Finding:
    ready, subject = each.workload.ready, each.workload.text
    if ready > 1:
        return Finding(
            Area.LEASE,
            Level.ERROR,
            subject,
            f"it runs without an election (--leader-elect=false), and all of its {ready} ready pods decide",
            "remove the flag, or scale it to 1",
        )
    message = f"it runs without an election (--leader-elect=false); {counted(ready, 'pod')} ready"
    return Finding(Area.LEASE, Level.OK if ready else Level.ERROR, subject, message)


def _age(seconds: float) -> str:
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * unit:
            return f"{seconds // unit:.0f}{name}"
    return f"{seconds:.0f}s"
