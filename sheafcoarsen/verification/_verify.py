"""`verify`: check of all statements that apply to an object, and its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex, overload

from sheafcoarsen._support import checks, linalg, tables, threads
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.solve import Sparsification
from sheafcoarsen.verification.reductions import (
    OF_ELIMINATIONS,
    OF_SPARSIFICATIONS,
    SchurEvidence,
    SparseEvidence,
)
from sheafcoarsen.verification.relative_residual import Outcome, Statement
from sheafcoarsen.verification.residuals import Evidence
from sheafcoarsen.verification.statements import STATEMENTS


@dataclass(frozen=True)
class Check:
    """Result of checking one statement.

    ``ratio`` is the largest ``norm(error) / (n eps norms)``, which is below ``threshold`` if the
    statement holds. If the statement does not apply, ``ratio`` is None, ``passed`` is True, and
    ``skipped_because`` gives the reason. ``how`` is "exact" if all blocks were compared, "probe" if
    random cochains or sampled clusters were compared, and "dense" if dense matrices were compared.

    Attributes
    ----------
    name, label : str
        Name of the statement, and its label in the paper (with a colon) or the fact or section of
        docs/conventions.md ("fact-1", "section-2").
    ratio, threshold : float or None, float
    passed : bool
    skipped_because, how : str or None
    error, allowed : float or None
        norm(error) and its bound ``threshold n eps norms`` in the block where the ratio is largest.
        They have the units of the quantity that is compared, so they scale with the maps.
    where : str or None
        The block where the ratio is largest, such as "cluster 3", "cluster 1 and cluster 4" (an
        off-diagonal block), "coarse edge 7" or "vertex 5"; None for statements without blocks.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(4))
    >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
    >>> check = sc.verify(C).checks[0]
    >>> check.verdict, check.passed, bool(check.ratio < check.threshold)
    ('ok', True, True)
    >>> check.error <= check.allowed, check.slack == check.allowed - check.error
    (True, True)
    """

    name: str
    label: str
    ratio: float | None
    threshold: float
    passed: bool
    skipped_because: str | None
    how: str | None
    error: float | None = None
    allowed: float | None = None
    where: str | None = None

    @property
    def slack(self) -> float | None:
        """``allowed - error``, negative if the statement fails; None if it does not apply."""
        if self.error is None or self.allowed is None:
            return None
        return self.allowed - self.error

    @property
    def verdict(self) -> str:
        """The outcome as text: "ok", "FAILED", or the reason why the statement does not apply."""
        if self.skipped_because is not None:
            return f"does not apply: {self.skipped_because}"
        return "ok" if self.passed else "FAILED"


@dataclass(frozen=True, eq=False)
class Verification:
    """Table of checks, formatted by ``str`` and displayed in notebooks.

    Its truth value is ``passed``. Iteration yields the checks; ``V[label]`` is the check with that
    label, and ``V[i]`` the check at position i.

    Attributes
    ----------
    checks : tuple of Check
        One check for each statement, in the order of the table.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(4))
    >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
    >>> V = sc.verify(C)
    >>> V.passed, V["thm:Galerkin_realization"].passed
    (True, True)
    >>> V[0].label, len(V[-4:])
    ('section-2', 4)
    >>> [check.label for check in V if check.skipped_because is None][:2]
    ['section-2', 'eq:galerkin_energy_identity']
    """

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every statement that applies holds."""
        return all(check.passed for check in self.checks)

    def __len__(self) -> int:
        return len(self.checks)

    def __iter__(self) -> Iterator[Check]:
        return iter(self.checks)

    @overload
    def __getitem__(self, which: str | SupportsIndex) -> Check: ...

    @overload
    def __getitem__(self, which: slice) -> tuple[Check, ...]: ...

    def __getitem__(self, which: str | SupportsIndex | slice) -> Check | tuple[Check, ...]:
        """Return the check with a given label, such as ``"thm:Galerkin_realization"``, or name.

        Of several, such as those of the levels of a hierarchy, it is the first that fails, or else
        the first. Integers and slices select checks by position in the table.
        """
        if not isinstance(which, str):
            return self.checks[which]
        found = [check for check in self.checks if which in (check.label, check.name)]
        if found:
            return next((check for check in found if not check.passed), found[0])
        labels = ", ".join(check.label for check in self.checks)
        raise KeyError(f"no check has the label {which!r}; the labels are {labels}")

    def __bool__(self) -> bool:
        return self.passed

    def _counts(self) -> tuple[int, int]:
        """Return the number of statements that apply and hold, and the number that apply."""
        applied = [check for check in self.checks if check.skipped_because is None]
        return sum(check.passed for check in applied), len(applied)

    @property
    def summary(self) -> str:
        """The verdict in one sentence."""
        held, applied = self._counts()
        verdict = f"{applied - held} of {applied} FAILED"
        if self.passed:
            verdict = f"all {held} that apply hold" if applied else "there is nothing to check"
        skipped = len(self.checks) - applied
        return (
            f"{verdict}, {skipped} {'does' if skipped == 1 else 'do'} not apply "
            f"(a statement holds when its ratio is below {linalg.RESIDUAL_LIMIT:g})"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        shown: list[tuple[str, ...]] = [("statement", "label", "ratio", "how", "")]
        for check in self.checks:
            ratio = "-" if check.ratio is None else f"{check.ratio:.3g}"
            verdict = check.verdict
            if not check.passed and check.where:
                verdict += f", largest ratio: {check.where}"
            shown.append((check.name, check.label, ratio, check.how or "-", verdict))
        return shown

    def __str__(self) -> str:
        return "\n".join([*tables.aligned(self._rows(), str.ljust), self.summary])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *rows = self._rows()
        return f"{tables.table(rows, head=head)}<p>{tables.text(self.summary)}</p>"


def verify(C: Coarsening | Elimination | Sparsification | Hierarchy, seed: int = 0) -> Verification:
    """Check numerically every statement of the theory that applies to a coarsening.

    For an elimination, the statements are that its Laplacian is the Schur complement, solutions
    extend to solutions, global sections restrict onto those of the remaining sheaf, and extensions
    have least norm. For a sparsification, they are that maps are scaled by the roots of the
    weights, the bounds hold, and global sections are preserved.

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
    seed = checks.whole_number("seed", seed, at_least=0)
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
    with threads.single_threaded_blas():
        if isinstance(C, Elimination):
            statements, evidence = OF_ELIMINATIONS, SchurEvidence(C, seed)
        elif isinstance(C, Sparsification):
            statements, evidence = OF_SPARSIFICATIONS, SparseEvidence(C, seed)
        else:
            C = check_coarsening(C)
            if not C.R.is_held_by(C.prolongation):
                C = replace(C)  # validate the matrix again: its arrays were replaced
            statements, evidence = STATEMENTS, Evidence(C, seed)
        rows = (
            (name, label, next(filter(None, (step(evidence) for step in steps))))
            for name, label, *steps in statements
        )
        return Verification(tuple(check_of(*row) for row in rows))


def check_of(name: str, label: str, outcome: Outcome) -> Check:
    """Return the check for an outcome: a residual, or the reason why there is none."""
    if isinstance(outcome, str):
        return Check(name, label, None, linalg.RESIDUAL_LIMIT, True, outcome, None)
    worst, how = outcome
    passed = worst.ratio < linalg.RESIDUAL_LIMIT
    found = (worst.error, linalg.RESIDUAL_LIMIT * worst.rounding, worst.where or None)
    return Check(name, label, worst.ratio, linalg.RESIDUAL_LIMIT, passed, None, how, *found)
