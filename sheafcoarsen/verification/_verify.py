"""Every statement that applies, checked on one coarsening."""

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

    Of an elimination: that the Laplacian that is left is the Schur complement, that solutions come
    back, and that sections are kept. Of a sparsification: that maps are scaled by their weights,
    that its bounds hold, and that sections are kept.

    Each is judged by ``norm(error) / (n eps norms)`` below 30, n the size of the block compared,
    and the worst block counts (docs/conventions.md, section 3), so the verdict does not depend on
    the scale of the maps.

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
        For anything but a coarsening, or one whose parts do not fit together.

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
    # small dense blocks: more threads would only wait for each other
    with single_threaded_blas():
        evidence = Evidence(C, seed)
    return _judged(STATEMENTS, evidence)


def _judged(statements: Sequence[tuple[str, str, Callable]], evidence: object) -> Verification:
    """Check statements on what they need, one line of the table for each."""
    checks = []
    for name, label, statement in statements:
        with single_threaded_blas():
            outcome = statement(evidence)
        checks.append(check_of(name, label, outcome))
    return Verification(tuple(checks))


def check_of(name: str, label: str, outcome: Outcome) -> Check:
    """Return the check of a worst error and how it was found, or why there is none."""
    if isinstance(outcome, str):
        return Check(name, label, None, RESIDUAL_LIMIT, True, outcome, None)
    worst, how = outcome
    passed = worst.ratio < RESIDUAL_LIMIT
    sides = (worst.error, RESIDUAL_LIMIT * worst.rounding)
    return Check(name, label, worst.ratio, RESIDUAL_LIMIT, passed, None, how, *sides)
