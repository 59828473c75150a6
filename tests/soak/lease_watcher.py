"""Watches the lease of a soak: its holders, and the time since its last renewal."""

from __future__ import annotations

import asyncio
import time

from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import Session
from soak.diary import FAULT, Diary
from soak.scenery import LEASE

#: Seconds after a crash until the next leader's first renewal: docs/high-availability.md says 15 to 20.
BOUND_S = 20.0
#: Seconds that may be added by the processor and by asking twice a second.
ALLOWANCE_S = 5.0


class LeaseWatcher:
    """Asks for the lease twice a second.

    Attributes:
        oldest_s: The longest time since a renewal, since it was last taken by ``taken``.
        longest_s: The longest of all.
    """

    def __init__(self, session: Session, diary: Diary) -> None:
        self._session = session
        self._diary = diary
        self.oldest_s = 0.0
        self.longest_s = 0.0

    def taken(self) -> float:
        """The longest time since a renewal, from the last call on."""
        found, self.oldest_s = self.oldest_s, 0.0
        return found

    async def watch(self) -> None:
        """For ever."""
        holder, renewed, changed_at, overdue = "", "", time.monotonic(), False
        while True:
            try:
                spec = (await self._session.object("GET", LEASE))["spec"]
            except APIError:
                spec = {}
            now = time.monotonic()
            if not holder:
                changed_at = now  # the first one is still to come
            self.oldest_s = max(self.oldest_s, now - changed_at)
            self.longest_s = max(self.longest_s, now - changed_at)
            if now - changed_at > BOUND_S + ALLOWANCE_S and not overdue:
                overdue = True
                self._diary.note(FAULT, f"the lease was not renewed for {now - changed_at:.1f} s")
            new, when = spec.get("holderIdentity") or "", spec.get("renewTime") or ""
            if new and (new, when) != (holder, renewed):
                if new != holder:
                    shown = new.rpartition("_")[2][:8]
                    self._diary.note(
                        "lease", f"taken by {shown} {now - changed_at:.1f} s after its last renewal"
                    )
                holder, renewed, changed_at, overdue = new, when, now, False
            await asyncio.sleep(0.5)
