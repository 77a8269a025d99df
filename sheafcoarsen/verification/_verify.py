"""Check of all statements that apply to a coarsening, elimination or sparsification."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sheafcoarsen._support import RESIDUAL_LIMIT, single_threaded_blas, whole_number
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.solve import Sparsification
from sheafcoarsen.verification.relative_residual import Outcome, Statement
from sheafcoarsen.verification.residuals import Evidence
from sheafcoarsen.verification.result import Check, Verification
from sheafcoarsen.verification.schur import STATEMENTS as SCHUR
from sheafcoarsen.verification.schur import SchurEvidence
from sheafcoarsen.verification.sparse import STATEMENTS as SPARSE
from sheafcoarsen.verification.sparse import SparseEvidence
from sheafcoarsen.verification.statements import STATEMENTS


def verify(C: Coarsening | Elimination | Sparsification | Hierarchy, seed: int = 0) -> Verification:
    """Check numerically every statement of the theory that applies to a coarsening.

    For an elimination, the statements are that its Laplacian is the Schur complement, solutions
    extend to solutions, and global sections restrict onto those of the remaining sheaf. For a
    sparsification, they are that maps are scaled by the weights, the bounds hold, and global
    sections are preserved.

    A statement holds if the residual ``norm(error) / (n eps norms)`` is below 30 in every block,
    where n is the size of the block (docs/conventions.md, section 3). The verdict therefore does
    not depend on the scale of the maps. The table names the block where a failed statement has the
    largest residual: a cluster, a pair of clusters, a coarse edge or a vertex.

    Parameters
    ----------
    C : Coarsening, Elimination, Sparsification or Hierarchy
        Of a hierarchy all levels are checked, and the names of checks begin with "level 0:" etc.
    seed : int
        Random seed for cochains and for the choice of sampled clusters.

    Returns
    -------
    Verification
        It has the attributes ``passed`` and ``checks``; ``str`` returns a table.

    Raises
    ------
    TypeError, ValueError
        If ``C`` has another type or its fields are inconsistent.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
    >>> C = sc.coarsen(F, sc.select(F, 5), rank=2)
    >>> sc.verify(C).passed
    True
    >>> sc.verify(sc.eliminate(F))["fact-9"].verdict
    'ok'
    """
    seed = whole_number("seed", seed, at_least=0)
    if isinstance(C, Hierarchy):
        return Verification(
            tuple(
                replace(check, name=f"level {i}: {check.name}")
                for i, level in enumerate(C)
                for check in verify(level, seed)
            )
        )
    statements: Sequence[Statement]
    evidence: Any
    # one thread, because on small dense blocks BLAS threads would only wait for each other
    with single_threaded_blas():
        if isinstance(C, Elimination):
            statements, evidence = SCHUR, SchurEvidence(C, seed)
        elif isinstance(C, Sparsification):
            statements, evidence = SPARSE, SparseEvidence(C, seed)
        else:
            check_coarsening(C)
            statements, evidence = STATEMENTS, Evidence(C, seed)
        rows = (
            (name, label, next(filter(None, (step(evidence) for step in steps))))
            for name, label, *steps in statements
        )
        return Verification(tuple(check_of(*row) for row in rows))


def check_of(name: str, label: str, outcome: Outcome) -> Check:
    """Return the check for an outcome: a residual, or the reason why there is none."""
    if isinstance(outcome, str):
        return Check(name, label, None, RESIDUAL_LIMIT, True, outcome, None)
    worst, how = outcome
    passed = worst.ratio < RESIDUAL_LIMIT
    found = (worst.error, RESIDUAL_LIMIT * worst.rounding, worst.where or None)
    return Check(name, label, worst.ratio, RESIDUAL_LIMIT, passed, None, how, *found)
