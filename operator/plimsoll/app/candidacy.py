"""Who this process is in the election, and where the election takes place."""

import socket
import uuid
from pathlib import Path

from plimsoll.adapters.leasing import LeaseStore
from plimsoll.adapters.session import Session
from plimsoll.app.settings import Settings
from plimsoll.control.electing import Election
from plimsoll.control.fencing import Fence
from plimsoll.control.leading import Elected, Leadership, Unchallenged
from plimsoll.control.ports import Clock, Randomness, Recorder
from plimsoll.framework.observer import Observer

#: Where Kubernetes tells a pod its namespace.
OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

#: Where the lease lies when nothing says otherwise; kube-scheduler's is there, too.
DEFAULT_NAMESPACE = "kube-system"

#: What stands for the lease's name where there is no election.
NO_LEASE = "none"


def namespace_of(settings: Settings, own: Path = OWN_NAMESPACE) -> str:
    """The namespace of the lease."""
    if settings.leader_elect_resource_namespace:
        return settings.leader_elect_resource_namespace
    if settings.kubeconfig is None and own.is_file():
        return own.read_text(encoding="utf-8").strip() or DEFAULT_NAMESPACE
    return DEFAULT_NAMESPACE


def candidacy(
    settings: Settings,
    session: Session,
    *,
    fence: Fence,
    clock: Clock,
    randomness: Randomness,
    recorder: Recorder,
    observer: Observer,
) -> Leadership:
    """Take part in the election, or lead without one, as the flags say.

    Args:
        settings: The flags.
        session: A connection that nobody else uses.
        fence: To be opened while this process leads.
        clock: Time.
        randomness: Jitter.
        recorder: Records who became leader.
        observer: Told who leads.
    """
    if not settings.leader_elect:
        observer.leadership_changed(NO_LEASE, is_leading=True)
        return Unchallenged(fence, clock)
    name, terms = settings.leader_elect_resource_name, settings.terms
    timeout_s = max(
        1.0, terms.renew_deadline_s / 2
    )  # as client-go: one request never takes the whole deadline
    return Elected(
        name,
        Election(f"{socket.gethostname()}_{uuid.uuid4()}", terms),
        LeaseStore(session, namespace_of(settings), name, timeout_s),
        fence=fence,
        clock=clock,
        randomness=randomness,
        recorder=recorder,
        observer=observer,
    )
