"""Columns of the mirrored cluster for authors of plugins: counts, sums and indexes."""

from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import CountColumns, IdArray, PodIndex, RowArray, columns_of
from plimsoll.model.columns.domain_sums import DomainSums
from plimsoll.model.columns.pod_counts import PodClass, PodCounts
from plimsoll.model.columns.pods_by_importance import PodsByImportance
from plimsoll.model.columns.snapshot import CPU, MEMORY, PODS, STORAGE
from plimsoll.model.columns.term_counts import TermCounts
from plimsoll.model.kinds.node import allocatable_of
from plimsoll.model.kinds.pod import Container
from plimsoll.model.kinds.pod_terms import PodTerm, TermKind
from plimsoll.model.kinds.requests import is_extended, is_scalar
from plimsoll.model.quantity import milli, nanos, units

__all__ = [
    "CPU",
    "MEMORY",
    "PODS",
    "STORAGE",
    "Cluster",
    "Container",
    "CountColumns",
    "DomainSums",
    "IdArray",
    "PodClass",
    "PodCounts",
    "PodIndex",
    "PodTerm",
    "PodsByImportance",
    "RowArray",
    "TermCounts",
    "TermKind",
    "allocatable_of",
    "columns_of",
    "is_extended",
    "is_scalar",
    "milli",
    "nanos",
    "units",
]
