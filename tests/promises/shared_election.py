"""SharedElectionPromise: replicas that share the work write what their roles allow, and nothing else.

All of them renew the lease of the group under one identity, and each role has a lease of its own
(docs/high-availability.md, "Sharing the work"). A write needs the group's lease, renewed by its own sender;
a binding also the share of its node, a move or the status of a policy also rebalancing, and a deletion of a
pod the role of some scheduler name.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from promises.commits import Author, Commit
from promises.election import LEASES, ElectionPromise
from promises.evictions import is_removal
from promises.findings import Findings
from promises.pods import node_of
from promises.view import POLICIES, RECORDS

#: Under which all replicas renew the lease of the group.
GROUP = "replicas-that-share-the-work"

#: Parts into which nodes are divided, by a hash of their names (ADR 31).
SHARES = 6


class SharedElectionPromise(ElectionPromise):
    """Follows the lease of the group, and those of all roles.

    Args:
        findings: Of all promises.
        lease: Namespace and name of the group's lease.
        lease_s: Seconds after which a lease has expired.
    """

    def __init__(self, findings: Findings, lease: tuple[str, str], lease_s: float) -> None:
        super().__init__(findings, lease, lease_s)
        self._roles: dict[str, ElectionPromise] = {}
        self._members: dict[str, float] = {}  #: when each replica has renewed the lease of the group
        self._is_shared = False  #: whether the group has its lease

    def must_lead(self, author: Author, what: str, at: float) -> None:
        """The group's lease may have been stolen; until it would have expired, its members may write."""
        renewed = self._members.get(author.identity)
        if renewed is None or (not self._is_shared and at - renewed >= self._lease_s):
            self._findings.violated(at, f"{author.name} {what}, but is no member of the group")

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection == LEASES:
            self._lease_written(commit)
        elif commit.author.name:
            for role in self._needed(commit):
                if not any(each.is_held_by(commit.author.identity, commit.at) for each in self._of(role)):
                    self._findings.violated(
                        commit.at,
                        f"{commit.author.name} sent {commit.author.method} {commit.author.path}, "
                        f"but does not hold {role}",
                    )

    def _lease_written(self, commit: Commit) -> None:
        (namespace, name), author = commit.key, commit.author
        if namespace != self._lease[0]:
            return
        if name == self._lease[1]:
            holder = (commit.obj.get("spec") or {}).get("holderIdentity") or ""
            self._is_shared = commit.type != "DELETED" and holder == GROUP
            if self._is_shared and author.identity:
                self._members[author.identity] = commit.at
        elif name.startswith(f"{self._lease[1]}-"):
            role = self._roles.get(name)
            if role is None:
                role = self._roles[name] = ElectionPromise(self._findings, commit.key, self._lease_s)
            role.judge(commit)

    def _needed(self, commit: Commit) -> Iterator[str]:
        """The roles that a write needs; a name that ends with ``-`` is any role of the kind."""
        base = self._lease[1]
        if commit.collection == "pods":
            node = node_of(commit.obj)
            if node and commit.before is not None and not node_of(commit.before):
                yield f"{base}-nodes-{zlib.crc32(node.encode()) % SHARES}"
            if is_removal(commit):
                is_evicted = commit.author.path.endswith("/eviction")
                yield f"{base}-rebalancing" if is_evicted else f"{base}-scheduler-"
        elif commit.collection in (RECORDS, POLICIES):
            yield f"{base}-rebalancing"

    def _of(self, role: str) -> list[ElectionPromise]:
        return [
            each
            for name, each in self._roles.items()
            if name == role or (role.endswith("-") and name.startswith(role))
        ]
