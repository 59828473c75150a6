"""Traces: usage series, pod sizes with lifetimes, and a node's shape; from public data or made up.

Sources: ``google-vm-usage`` (1,600 jobs of Google's 2011 trace, 288 samples of five minutes, percent of the
request), ``azure-vm-arrivals`` (flavours, batches and lifetimes of Azure's V1 trace) and
``cloud-instance-types`` (allocatable of m6i.16xlarge). Memory above 100 % of the request is cut off, as the
data's README advises. Without the data the series are a slow random walk with the same mean, and the sizes
those that the trace has most.
"""

import csv
import gzip
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Samples of a series, and seconds between two of them.
SAMPLES, SAMPLE_S = 288, 300.0

#: Pods of a batch that count as one workload at most, and cores of the largest size that is taken.
MOST_REPLICAS, MOST_CORES = 8, 8.0

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Batch:
    """What one tenant asked for simultaneously: equal pods that live equally long.

    Attributes:
        cpu: Milli-cores of each.
        memory: Bytes of each.
        seconds: From start to end.
    """

    replicas: int
    cpu: int
    memory: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Traces:
    """All that a world is drawn from.

    Attributes:
        cpu: Shape (rows, 289): share of the request, the first sample repeated at the end.
        memory: Likewise, of the same rows.
        node_cpu: Milli-cores that pods may have on a node.
        node_memory: Bytes, likewise.
        name: Where it comes from.
    """

    cpu: Floats
    memory: Floats
    batches: tuple[Batch, ...]
    node_cpu: int = 31_850
    node_memory: int = 118_312 * 2**20
    name: str = "synthetic"


def read(folder: Path) -> Traces:
    """The public data, from the folder that has all of it."""
    google, azure = folder / "google-vm-usage", folder / "azure-vm-arrivals"
    with (folder / "cloud-instance-types" / "aws_instance_types.csv").open(encoding="utf-8") as lines:
        shape = next(each for each in csv.DictReader(lines) if each["instance_type"] == "m6i.16xlarge")
    return Traces(
        _series(google / "cpu_percent.csv.gz"),
        np.minimum(_series(google / "mem_percent.csv.gz"), 1.0),
        tuple(_batches(azure)),
        int(shape["alloc_cpu_milli"]),
        int(shape["alloc_memory_mib"]) * 2**20,
        "google-vm-usage, azure-vm-arrivals",
    )


def synthetic(rows: int = 200, seed: int = 0) -> Traces:
    """Series that persist as the real ones do (correlation 0.82 after five minutes), and common sizes."""
    chance = np.random.default_rng(seed)
    means = np.clip(chance.lognormal(-1.7, 0.55, rows), 0.05, 0.8)
    walk = np.empty((rows, SAMPLES))
    walk[:, 0] = chance.normal(0.0, 1.0, rows)
    for at in range(1, SAMPLES):
        walk[:, at] = 0.82 * walk[:, at - 1] + np.sqrt(1 - 0.82**2) * chance.normal(0.0, 1.0, rows)
    cpu = np.clip(means[:, None] * (1 + 0.13 * walk), 0.01, 1.0)
    memory = np.repeat(np.clip(chance.lognormal(-1.8, 0.5, rows), 0.05, 1.0)[:, None], SAMPLES, axis=1)
    sizes = [(1, 0.55), (2, 0.2), (4, 0.15), (8, 0.1)]
    batches = [
        Batch(
            int(chance.integers(1, MOST_REPLICAS + 1)),
            1_000 * cores,
            int(1.75 * GIB * cores),
            float(chance.choice([900.0, 3_600.0, 86_400.0], p=[0.55, 0.35, 0.1])),
        )
        for cores, share in sizes
        for _ in range(int(400 * share))
    ]
    return Traces(_closed(cpu), _closed(memory), tuple(batches))


def _closed(series: Floats) -> Floats:
    return np.hstack([series, series[:, :1]])


def _series(path: Path) -> Floats:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = np.loadtxt(lines, delimiter=",", skiprows=1, usecols=range(1, SAMPLES + 1))
    return _closed(np.asarray(found, dtype=np.float64) / 100)


def _batches(folder: Path) -> list[Batch]:
    """Those of the part whose lifetimes are known; a batch of several sizes is one for each."""
    sizes = {
        letter: tuple(map(float, size.split(",")))
        for size, letter in (line.split() for line in (folder / "flav_map.txt").read_text().splitlines())
    }
    bins = defaultdict[str, list[float]](list)
    with gzip.open(folder / "v1.interval_map.txt.gz", "rt") as lines:
        for line in lines:
            lifetime, number = line.split()
            bins[number].append(float(lifetime))
    lasting = {number: (min(each) + max(each)) / 2 for number, each in bins.items()}
    found = []
    with (
        gzip.open(folder / "v1.test.txt.gz", "rt") as arrivals,
        gzip.open(folder / "v1.test.c2591400.txt.gz", "rt") as ends,
    ):
        for arriving, ending in zip(arrivals, ends, strict=True):
            flavours, lives = (text.split()[1].split(",") for text in (arriving, ending))
            for start, stop in _bounds(flavours):
                counts = defaultdict[str, list[str]](list)
                for flavour, life in zip(flavours[start:stop], lives[start:stop], strict=True):
                    counts[flavour].append(life)
                for flavour, known in counts.items():
                    cores, gib = sizes[flavour]
                    if cores <= MOST_CORES:
                        seconds = max(lasting[known[0][1:]], SAMPLE_S)
                        replicas = min(len(known), MOST_REPLICAS)
                        found.append(Batch(replicas, int(1_000 * cores), int(gib * GIB), seconds))
    return found


def _bounds(tokens: list[str]) -> list[tuple[int, int]]:
    found, start = [], 0
    for at, token in enumerate(tokens):
        if token == "|":  # noqa: S105 - ends a batch
            if at > start:
                found.append((start, at))
            start = at + 1
    return found
