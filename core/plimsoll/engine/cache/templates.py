"""Keeps the caches of one profile, and decides which templates' filter results and scores stay in memory.

A cache is worth its memory if more pods of its template come. A pod with a unique template needs none, and
thousands of such pods may come in a row. A new cache is therefore on probation with a few others, and is kept
when a second pod of its template comes, even after the probation. Caches of unique templates thus reuse the
same little memory, which stays in the processor's cache.

Source: the 2Q replacement of Johnson and Shasha, VLDB 1994.
"""

from collections import OrderedDict

from plimsoll.engine.cache.node_columns import NodeColumns
from plimsoll.engine.cache.template import TemplateCache
from plimsoll.engine.kernel.library import KERNEL, Kernel
from plimsoll.engine.profile import Profile
from plimsoll.framework import PodTemplate
from plimsoll.model.columns.cluster import Cluster

#: Approximate maximum memory for kept caches, per profile.
CACHE_BYTES = 256 * 2**20

#: Caches that are kept however many nodes there are: with fewer, a wave of fifty owners that alternate
#: would have each pod evaluated on all nodes. Beyond 60,000 nodes they take more than ``CACHE_BYTES``.
FEWEST = 64

#: Bytes of a kept cache besides its columns, and for each byte of its template's deciding fields: 15 kB and
#: 11 were measured.
BESIDES, A_BYTE = 16_384, 12

#: Number of caches on probation.
PROBATION = 16

#: Number of templates that had a cache and are remembered, by hash.
REMEMBERED = 65_536


class TemplateCaches:
    """Caches by template: the most recently used, within a limit."""

    def __init__(self, profile: Profile, cluster: Cluster, kernel: Kernel | None = KERNEL) -> None:
        self._profile = profile
        self._cluster = cluster
        self._shared = NodeColumns(cluster, profile, kernel)
        self._kept: OrderedDict[PodTemplate, TemplateCache] = OrderedDict()
        self._probation: OrderedDict[PodTemplate, TemplateCache] = OrderedDict()
        self._own_bytes = 0  #: of kept caches, without their columns
        self._dropped: set[int] = set()
        self._heavy: tuple[PodTemplate, TemplateCache] | None = None  #: only until another template is used
        self._latest: tuple[PodTemplate, TemplateCache] | None = None

    def use(self, template: PodTemplate) -> TemplateCache:
        """The cache of the template of a pod to schedule, created if it is missing."""
        latest = self._latest
        if latest is not None and latest[0] is not template:
            if latest[1].state.is_heavy:
                self.drop(latest[0])
            if latest[0].is_heavy:
                self._cluster.trim()
        cache = self._cache_of(template)
        self._latest = template, cache
        return cache

    def _cache_of(self, template: PodTemplate) -> TemplateCache:
        cache = self._kept.get(template)
        if cache is not None:
            self._heavy = None
            self._kept.move_to_end(template)
            return cache
        self._cluster.trim()  # between two attempts: only new templates name new labels
        if template.is_heavy:
            if self._heavy is None or self._heavy[0] is not template:
                self._heavy = template, TemplateCache(self._profile, self._cluster, self._shared)
            return self._heavy[1]
        self._heavy = None
        cache = self._probation.pop(template, None)
        if cache is None:
            cache = TemplateCache(self._profile, self._cluster, self._shared)
            if hash(template.signature) not in self._dropped:
                self._try(template, cache)
                return cache
        self._keep(template, cache)
        return cache

    def drop(self, template: PodTemplate) -> None:
        """Drop a cache whose plugins failed."""
        if self._kept.pop(template, None) is not None:
            self._own_bytes -= own_bytes(template)
        self._probation.pop(template, None)
        self._heavy = self._latest = None

    def _try(self, template: PodTemplate, cache: TemplateCache) -> None:
        self._probation[template] = cache
        if len(self._probation) > PROBATION:
            dropped, _ = self._probation.popitem(last=False)
            if len(self._dropped) >= REMEMBERED:
                self._dropped.clear()
            self._dropped.add(hash(dropped.signature))

    def _keep(self, template: PodTemplate, cache: TemplateCache) -> None:
        self._kept[template] = cache
        self._own_bytes += own_bytes(template)
        # A column of points for each score plugin, their sum, and the feasible rows. Filter codes mostly
        # depend on nodes and are shared: six columns a cache, as measured.
        columns = 8 * (len(self._profile.score) + 2) * len(self._cluster)
        most = max(CACHE_BYTES, FEWEST * columns)
        while len(self._kept) > PROBATION and self._own_bytes + columns * len(self._kept) > most:
            oldest, _ = self._kept.popitem(last=False)
            self._own_bytes -= own_bytes(oldest)


def own_bytes(template: PodTemplate) -> int:
    """Approximate bytes of a template's cache, without its columns."""
    return BESIDES + A_BYTE * template.size
