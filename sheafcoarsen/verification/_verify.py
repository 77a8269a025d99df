"""Check every applicable statement on a coarsening or elimination."""

from collections.abc import Callable, Sequence

from sheafcoarsen._support import RESIDUAL_LIMIT, single_threaded_blas, whole_number
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.solve import Sparsification
from sheafcoarsen.verification.relative_residual import Outcome
from sheafcoarsen.verification.residuals import Evidence
from sheafcoarsen.verification.result import Check, Verification
from sheafcoarsen.verification.schur import STATEMENTS as SCHUR
from sheafcoarsen.verification.schur import SchurEvidence
from sheafcoarsen.verification.sparse import STATEMENTS as SPARSE
from sheafcoarsen.verification.sparse import SparseEvidence
from sheafcoarsen.verification.statements import STATEMENTS


def verify(C: Coarsening | Elimination | Sparsification, seed: int = 0) -> Verification:
    """Check every statement of the theory that applies to a coarsening, on that coarsening.

    For an elimination: its Laplacian is the Schur complement, solutions extend to solutions, and
    global sections are preserved. For a sparsification: maps are scaled by their weights, its
    bounds hold, and global sections are preserved.

    The residual ``norm(error) / (n eps norms)`` must be below 30, n the size of the block compared.
    The largest over all blocks decides (docs/conventions.md, section 3), so the verdict does not
    depend on the scale of the maps.

    Parameters
    ----------
    C : Coarsening, Elimination or Sparsification
    seed : int
        For random cochains and sampled clusters.

    Returns
    -------
    Verification
        ``passed``, ``checks``, and a table as ``str``.

    Raises
    ------
    TypeError, ValueError
        For anything but a coarsening or elimination, or one whose fields are inconsistent.

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
    if isinstance(C, Elimination):
        with single_threaded_blas():
            return _judged(SCHUR, SchurEvidence(C, seed))
    if isinstance(C, Sparsification):
        with single_threaded_blas():
            return _judged(SPARSE, SparseEvidence(C, seed))
    check_coarsening(C)
    # small dense blocks: BLAS threads would only wait for each other
    with single_threaded_blas():
        evidence = Evidence(C, seed)
    return _judged(STATEMENTS, evidence)


def _judged(statements: Sequence[tuple[str, str, Callable]], evidence: object) -> Verification:
    """Evaluate statements on their evidence; one check for each."""
    checks = []
    for name, label, statement in statements:
        with single_threaded_blas():
            outcome = statement(evidence)
        checks.append(check_of(name, label, outcome))
    return Verification(tuple(checks))


def check_of(name: str, label: str, outcome: Outcome) -> Check:
    """Return the check of a relative residual, or of the reason why there is none."""
    if isinstance(outcome, str):
        return Check(name, label, None, RESIDUAL_LIMIT, True, outcome, None)
    worst, how = outcome
    passed = worst.ratio < RESIDUAL_LIMIT
    sides = (worst.error, RESIDUAL_LIMIT * worst.rounding)
    return Check(name, label, worst.ratio, RESIDUAL_LIMIT, passed, None, how, *sides)
