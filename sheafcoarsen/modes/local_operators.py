"""The local operators of a cluster whose low modes may be retained."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from sheafcoarsen._support import checks, ragged
from sheafcoarsen.partition import Clusters
from sheafcoarsen.sheaf import CellularSheaf


@dataclass(frozen=True)
class LocalOperator:
    """Base class of the local operators; :func:`local_operator_of` looks them up by name."""

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""  # label of the operator in plots
    spectral: ClassVar[bool] = False  # whether U_a* L_a U_a = diag(lambda)

    def index(self, sheaf: CellularSheaf, clusters: Clusters) -> Clusters:
        """Return the clusters with all index arrays that the operator needs."""
        return clusters


@dataclass(frozen=True)
class Internal(LocalOperator):
    """Internal Laplacian L_a of the paper's theory (``eq:internal_sheaf_laplacian``)."""

    name = "internal"
    label = "internal Laplacian $L_a$"
    spectral = True


@dataclass(frozen=True)
class Principal(LocalOperator):
    """Principal block L[C_a, C_a] of the paper's layer: L_a plus F* F of crossing edges."""

    name = "principal"
    label = "principal block $L[C_a, C_a]$"

    def index(self, sheaf: CellularSheaf, clusters: Clusters) -> Clusters:
        """Return the clusters with the near ends of crossing edges added to their index arrays."""
        halves = np.concatenate([2 * clusters.crossing_edges, 2 * clusters.crossing_edges + 1])
        cluster = clusters.labels[sheaf.edges[halves >> 1, halves & 1]]
        starts = ragged.offsets(np.bincount(cluster, minlength=clusters.n_clusters))
        halves = ragged.read_only(halves[np.argsort(cluster, kind="stable")])
        return clusters._replace(half_edges=halves, half_ptr=ragged.read_only(starts))


@dataclass(frozen=True)
class Oversampled(LocalOperator):
    """Operator of a cluster's responses to sources in a patch (docs/conventions.md, section 10).

    Attributes
    ----------
    rings : int
        Maximum number of rings of neighbours in a patch.
    target : float or None
        The largest eigenvalue of interest; None estimates it by a pilot.
    """

    name = "oversampled"
    label = "oversampled operator"

    rings: int = 1
    target: float | None = None

    def __post_init__(self) -> None:
        rings = min(checks.whole_number("rings", self.rings, at_least=0), checks.MAX_DIMENSION)
        object.__setattr__(self, "rings", rings)
        if self.target is None:
            return
        target = checks.real_number("target", self.target)
        if not 0 < target < math.inf:
            raise ValueError(
                f"`target` must be positive and finite, got {self.target!r}: "
                "pass the largest eigenvalue of interest, or None to estimate it"
            )
        object.__setattr__(self, "target", target)


OPERATORS: dict[str, type[LocalOperator]] = {
    operator.name: operator for operator in (Internal, Principal, Oversampled)
}
"""Local operators by name."""


LocalOperatorLike: TypeAlias = Literal["internal", "principal", "oversampled"] | LocalOperator
"""Name of a local operator, or an operator with its settings."""


def local_operator_of(
    local_operator: str | LocalOperator, rings: int | None = None, target: float | None = None
) -> LocalOperator:
    """Return the operator for a name or object; raise for settings that do not apply to it."""
    given = {"rings": rings, "target": target}
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(local_operator, Internal | Principal | Oversampled):
        for name, value in given.items():
            raise ValueError(
                f"`{name}` = {value!r} is not allowed with `local_operator` = {local_operator!r}, "
                f"an object with its own settings: omit it"
            )
        return local_operator
    operator = OPERATORS[checks.choice("local_operator", local_operator, tuple(OPERATORS))]
    if operator is not Oversampled:
        for name, value in given.items():
            raise ValueError(
                f'`{name}` applies only to `local_operator` = "oversampled", '
                f"got {value!r} with {local_operator!r}: omit it"
            )
    return operator(**given)
