"""ElectionPromise: one process writes at a time, and a lease is taken when it was released or has expired."""

from __future__ import annotations

from promises.commits import Author, Commit
from promises.findings import Findings

LEASES = "leases.coordination.k8s.io"

#: What a process writes that does not lead: its own lease, and what it asks about its rights.
OWN_BUSINESS = ("/apis/coordination.k8s.io/", "/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/")

#: Clocks of two machines differ in speed: the share of an interval that another one may measure as the whole.
TOLERANCE = 0.89


class ElectionPromise:
    """Follows one lease, and knows who may write.

    Args:
        lease: Its namespace and name.
        lease_s: Seconds after which it has expired.
    """

    def __init__(self, findings: Findings, lease: tuple[str, str], lease_s: float) -> None:
        self._findings = findings
        self._lease = lease
        self._lease_s = lease_s
        self._leader = ""
        self._renewed: dict[str, float] = {}
        self._is_offered = False  #: whether somebody deleted it by hand, or wrote a shorter time into it

    def judge_request(self, author: Author, at: float) -> None:
        """A request is at the API server, which may yet refuse it: writes are for the leader alone."""
        if author.method != "GET" and not author.path.startswith(OWN_BUSINESS):
            self.must_lead(author, f"sent {author.method} {author.path}", at)

    def must_lead(self, author: Author, what: str, at: float) -> None:
        """A lease that was stolen is noticed late; until it would have expired, its last holder may write."""
        if not self.is_held_by(author.identity, at):
            holder = f"is held by {self._leader}" if self._leader else "has no holder"
            self._findings.violated(at, f"{author.name} {what}, but the lease {holder}")

    def is_held_by(self, identity: str, at: float) -> bool:
        """Whether a process has the lease, or cannot know yet that it was taken away."""
        renewed = self._renewed.get(identity)
        return renewed is not None and (self._leader == identity or at - renewed < self._lease_s)

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection != LEASES or commit.key != self._lease:
            return
        author = commit.author
        spec = commit.obj.get("spec") or {}
        holder = "" if commit.type == "DELETED" else spec.get("holderIdentity") or ""
        self._findings.facts.takeovers += holder not in ("", self._leader)
        last = self._renewed.get(self._leader)
        is_taken = bool(author.identity) and author.identity == holder != self._leader
        if is_taken and last is not None and not self._is_offered:
            self._taken_after(commit.at - last, author, commit.at)
        # Candidates go by what is written in a lease, as those of client-go.
        shortened = (spec.get("leaseDurationSeconds") or 0) < self._lease_s
        self._is_offered = not author.identity and (commit.type == "DELETED" or shortened)
        self._leader = holder
        if holder and (holder == author.identity or not author.identity):
            self._renewed[holder] = commit.at
        if author.identity and author.identity != holder:
            self._renewed.pop(author.identity, None)  # it gave the lease away

    def _taken_after(self, silence_s: float, author: Author, at: float) -> None:
        """A candidate took a lease that was not released.

        Who was robbed of a lease that would still be its own may take it back.
        """
        own = self._renewed.get(author.identity)
        is_own = own is not None and at - own < self._lease_s
        if silence_s < self._lease_s * TOLERANCE and not is_own:
            self._findings.violated(
                at, f"{author.name} took the lease of {self._leader} after {silence_s:.1f} s"
            )
