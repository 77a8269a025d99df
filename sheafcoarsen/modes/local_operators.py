"""The local operators of a cluster whose low modes may be retained."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from sheafcoarsen._support import MAX_DIMENSION, choice, real_number, whole_number
from sheafcoarsen.partition import Clusters
from sheafcoarsen.sheaf import CellularSheaf


@dataclass(frozen=True)
class LocalOperator:
    """Base class of the local operators; strings name them (:func:`local_operator_of`)."""

    name: ClassVar[str] = ""
    label: ClassVar[str] = ""  # axis label
    spectral: ClassVar[bool] = False  # whether U_a* L_a U_a = diag(lambda)
    keeps_sections: ClassVar[bool] = False  # whether all local sections give H^0

    def index(self, sheaf: CellularSheaf, clusters: Clusters) -> Clusters:
        """Return the index structure that the operator needs."""
        return clusters


@dataclass(frozen=True)
class Internal(LocalOperator):
    """L_a of the paper's theory (``eq:internal_sheaf_laplacian``): edges with both ends in C_a."""

    name = "internal"
    label = "internal Laplacian $L_a$"
    spectral = True
    keeps_sections = True


@dataclass(frozen=True)
class Principal(LocalOperator):
    """The block L[C_a, C_a] of the paper's layer: L_a and the near maps of crossing edges."""

    name = "principal"
    label = "principal block $L[C_a, C_a]$"

    def index(self, sheaf: CellularSheaf, clusters: Clusters) -> Clusters:
        """Add the near ends of crossing edges."""
        return clusters.with_half_edges(sheaf)


@dataclass(frozen=True)
class Oversampled(LocalOperator):
    """Responses of a cluster to sources in a patch around it (docs/conventions.md, section 10).

    Attributes
    ----------
    rings : int
        Largest number of rings of neighbours in a patch.
    target : float or None
        The largest eigenvalue of interest; None uses a pilot's estimate.
    """

    name = "oversampled"
    label = "oversampled operator"
    keeps_sections = True

    rings: int = 1
    target: float | None = None

    def __post_init__(self) -> None:
        rings = min(whole_number("rings", self.rings, at_least=0), MAX_DIMENSION)
        object.__setattr__(self, "rings", rings)
        if self.target is None:
            return
        target = real_number("target", self.target)
        if not 0 < target < math.inf:
            raise ValueError(
                f"`target` must be positive and finite, got {self.target!r}: "
                "it is the largest eigenvalue of interest, and None estimates it"
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
    """Return the operator of a name or object; raise for settings that do not belong to it."""
    given = {"rings": rings, "target": target}
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(local_operator, Internal | Principal | Oversampled):
        for name, value in given.items():
            raise ValueError(
                f"`{name}` is part of a `local_operator` that is an object, got {value!r} "
                f"with {local_operator!r}: leave it out"
            )
        return local_operator
    operator = OPERATORS[choice("local_operator", local_operator, tuple(OPERATORS))]
    if operator is not Oversampled:
        for name, value in given.items():
            raise ValueError(
                f'`{name}` is for `local_operator` = "oversampled", '
                f"got {value!r} with {local_operator!r}: leave it out"
            )
    return operator(**given)
