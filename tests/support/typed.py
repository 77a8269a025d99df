"""Calls that mypy reads with the library: an `ignore` that is not needed is an error of its own."""

import networkx as nx
import numpy as np

import sheafcoarsen as sc


def cochains(F: sc.CellularSheaf, C: sc.Coarsening, H: sc.Hierarchy) -> None:
    """Pass cochains as arrays, sequences and nested sequences, but not as text."""
    sc.energy(F, np.ones(3, np.float32))
    sc.energy(F, range(3))
    sc.energy(F, [[1.0, 2], [1j, 0], [0, 0]])
    sc.energy(F, [np.float32(1), np.int64(2), 3.0])
    sc.energy(F, [np.ones(2), np.ones(2)])
    sc.energy(F, (1, True))
    H.pool(C.lift([1.0]))
    sc.energy(F, "abc")  # type: ignore[arg-type]
    sc.energy(F, 3.0)  # type: ignore[arg-type]
    sc.energy_ledger(C, "abc")  # type: ignore[arg-type]
    sc.Solver(F)("abc")  # type: ignore[arg-type]
    C.pool(None)  # type: ignore[arg-type]


def results(F: sc.CellularSheaf, C: sc.Coarsening) -> None:
    """Use results as what they are."""
    graph: nx.Graph = C.quotient()
    graph.nodes()
    C.prolongation.toarray()
    C.quotient("text").wrong  # noqa: B018 (networkx has no types)
    sc.coarsen(F, C.partition, 2).wrong  # type: ignore[attr-defined]  # noqa: B018
