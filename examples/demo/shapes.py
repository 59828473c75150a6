"""Shapes of nodes and pods of a real GPU cluster, with their shares.

Counts of the OpenB trace (Weng et al., "Beware of Fragmentation", USENIX ATC 2023; data of
hkust-adsl/kubernetes-scheduler-simulator at 8f3d6417353c, Apache-2.0): 1,523 nodes and 8,152 pods.
The tables below hold the most frequent shapes, 92 % of the nodes and 71 % of the pods.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A kind of machine: cores in milli, memory in MiB, GPUs in count; ``count`` of 1,523 are like this."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_model: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class PodShape:
    """A kind of pod; ``gpu_milli`` is for all its GPUs together; ``count`` of 8,152 are like this."""

    cpu_milli: int
    memory_mib: int
    gpu_milli: int
    qos: str
    gpu_models: tuple[str, ...] = ()
    count: int = 1


NODE_SHAPES = (
    NodeShape(96_000, 393_216, 8, "G2", 549),
    NodeShape(104_000, 524_288, 2, "T4", 387),
    NodeShape(32_000, 262_144, 0, "", 129),
    NodeShape(16_000, 122_880, 2, "P100", 107),
    NodeShape(96_000, 524_288, 0, "", 59),
    NodeShape(128_000, 786_432, 8, "G3", 39),
    NodeShape(96_000, 393_216, 0, "", 30),
    NodeShape(32_000, 131_072, 4, "V100M16", 28),
    NodeShape(32_000, 131_072, 0, "", 23),
    NodeShape(64_000, 262_144, 2, "P100", 22),
    NodeShape(64_000, 524_288, 0, "", 22),
)

POD_SHAPES = (
    PodShape(3_152, 5_600, 810, "BE", count=1047),
    PodShape(11_300, 49_152, 1000, "LS", count=857),
    PodShape(11_400, 48_128, 1000, "LS", count=534),
    PodShape(3_152, 5_600, 1000, "BE", count=470),
    PodShape(11_908, 47_104, 470, "LS", count=388),
    PodShape(12_500, 57_344, 0, "LS", count=364),
    PodShape(8_000, 30_517, 470, "BE", count=358),
    PodShape(32_000, 49_152, 0, "BE", count=284),
    PodShape(18_708, 64_512, 1000, "LS", count=255),
    PodShape(11_908, 47_104, 650, "LS", count=237),
    PodShape(9_810, 41_560, 1000, "LS", count=195),
    PodShape(8_000, 30_517, 0, "BE", count=163),
    PodShape(15_700, 58_368, 1000, "LS", count=158),
    PodShape(11_908, 47_104, 1000, "BE", count=153),
    PodShape(15_400, 51_200, 0, "LS", count=120),
    PodShape(4_000, 22_888, 320, "BE", count=111),
    PodShape(12_000, 24_576, 1000, "Burstable", count=52),
)

#: Priority by the trace's quality of service: latency sensitive, burstable, best effort.
PRIORITIES = {"LS": 1000, "Guaranteed": 500, "Burstable": 500, "BE": 0}
