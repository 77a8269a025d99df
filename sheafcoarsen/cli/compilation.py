"""Compile kernels ahead of their first use, in several processes with one cache.

For container images and compute clusters, so that the first user need not wait::

    sheafcoarsen compile            kernels that most work in double precision needs
    sheafcoarsen compile --all      all kernels, for the four scalar types
"""

import logging
import multiprocessing
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import Any, TypeAlias

import networkx as nx
import numpy as np

import sheafcoarsen as sc
from sheafcoarsen._support import threads
from sheafcoarsen.modes import LocalOperatorLike
from sheafcoarsen.ranks import Rule, gap, kernel

SCALARS = ("float64", "float32", "complex128", "complex64")

Cases: TypeAlias = tuple[tuple[int | Rule, LocalOperatorLike], ...]


def _example(
    scalar: str, dims: Any = 1, shape: tuple[int, int] = (4, 6), parts: int = 4
) -> tuple[sc.CellularSheaf, sc.Partition]:
    """Return a sheaf on a small grid and a partition of it, without running kernels."""
    n = shape[0] * shape[1]
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(*shape))
    sheaf = sc.CellularSheaf.random(graph, dims, 2, seed=0, dtype=np.dtype(scalar))
    return sheaf, sc.Partition(np.arange(n) * parts // n)


def _modes(scalar: str, cases: Cases = ((2, "internal"),), *, large: bool = False) -> None:
    example = _example(scalar, 3, (8, 12), 3) if large else _example(scalar)
    for rank, operator in cases:
        sc.local_modes(*example, rank, local_operator=operator)


def _coarse_sheaf(scalar: str) -> None:
    for dims in (np.arange(24) % 3 + 1, 1):
        sheaf, partition = _example(scalar, dims)
        sizes = np.bincount(partition.labels, sheaf.vertex_dims).astype(int)
        basis = [np.eye(size, min(size, 2), dtype=sheaf.dtype) for size in sizes]
        sc.coarsen(sheaf, partition, basis=basis, compress=True).recoarsen(sheaf)
        C = sc.coarsen(sheaf, partition, basis=basis)
    sc.verify(C)
    sc.energy_ledger(C, np.ones(sheaf.dim_c0, sheaf.dtype))


def _select_and_operators(scalar: str) -> None:
    path = np.array([[0, 1], [1, 2]])
    for d in (1, 2, 3):
        maps = np.ones((2, d, d), np.dtype(scalar))
        sc.laplacian(sc.CellularSheaf(path, maps, maps))
    karate = sc.CellularSheaf.constant(nx.karate_club_graph())
    for method in ("balls", "matching"):
        sc.select(karate, 6, method=method)
    sc.select(_example(scalar)[0], 4, weights="sheaf")
    sheaf, _ = _example(scalar, 4)
    sc.laplacian(sheaf)
    sc.diffuse(sc.normalize(sheaf), np.ones(sheaf.dim_c0), 1.0)


def _sections(scalar: str) -> None:
    sheaf, _ = _example(scalar)
    sc.global_sections(sheaf)
    sc.harmonic_extension(sheaf, [0], [np.ones(1)])


Job: TypeAlias = Callable[[str], None]

USUAL: tuple[Job, ...] = (
    # the longest first, so that the processes finish at about the same time
    partial(_modes, cases=((2, "oversampled"),)),
    _sections,
    partial(_modes, large=True),
    _coarse_sheaf,
    _modes,
    _select_and_operators,
)
RARE: tuple[Job, ...] = (
    partial(_modes, cases=((2, "oversampled"),), large=True),
    # all rules in one job, because they share kernels
    partial(_modes, cases=((kernel(), "internal"), (gap(3), "internal"), (gap(3), "oversampled"))),
)


def compile_one(job: Job, scalar: str) -> None:
    """Run one job without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings concern the examples only
        job(scalar)


def compile_kernels(
    scalars: tuple[str, ...] = SCALARS[:1], *, rare: bool = False, progress: bool = False
) -> None:
    """Compile kernels into the cache on disk; ``rare`` includes rarely used ones."""
    jobs = [(job, scalar) for scalar in scalars for job in USUAL + (RARE if rare else ())]
    count = min(os.cpu_count() or 1, len(jobs))
    context = multiprocessing.get_context("spawn")
    with (
        threads.bar(len(jobs), "compiling", progress) as shown,
        ProcessPoolExecutor(count, context, logging.disable, (logging.WARNING,)) as pool,
    ):
        for done in as_completed([pool.submit(compile_one, *job) for job in jobs]):
            done.result()
            shown.update(1)
