"""Columns of the mirrored cluster for authors of plugins: counts, sums and indexes."""

from plimsoll.model.columns.cluster import Cluster as Cluster
from plimsoll.model.columns.columns import CountColumns as CountColumns
from plimsoll.model.columns.columns import PodIndex as PodIndex
from plimsoll.model.columns.columns import RowArray as RowArray
from plimsoll.model.columns.columns import columns_of as columns_of
from plimsoll.model.columns.domain_sums import DomainSums as DomainSums
from plimsoll.model.columns.pod_counts import PodClass as PodClass
from plimsoll.model.columns.pod_counts import PodCounts as PodCounts
from plimsoll.model.columns.pods_by_importance import PodsByImportance as PodsByImportance
from plimsoll.model.columns.snapshot import CPU as CPU
from plimsoll.model.columns.snapshot import EXACT_AMOUNT as EXACT_AMOUNT
from plimsoll.model.columns.snapshot import MEMORY as MEMORY
from plimsoll.model.columns.snapshot import PODS as PODS
from plimsoll.model.columns.snapshot import STORAGE as STORAGE
from plimsoll.model.columns.snapshot import Capacity as Capacity
from plimsoll.model.columns.term_counts import TermCounts as TermCounts
from plimsoll.model.kinds.node import allocatable_of as allocatable_of
from plimsoll.model.kinds.pod import Container as Container
from plimsoll.model.kinds.pod_terms import PodTerm as PodTerm
from plimsoll.model.kinds.pod_terms import TermKind as TermKind
from plimsoll.model.kinds.requests import is_extended as is_extended
from plimsoll.model.kinds.requests import is_scalar as is_scalar
from plimsoll.model.quantity import milli as milli
from plimsoll.model.quantity import units as units
