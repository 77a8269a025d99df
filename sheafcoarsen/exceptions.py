"""Warning classes, one for each condition that a user may want to silence, and `NotConverged`."""

import numpy as np


class TiedModesWarning(UserWarning):
    """The cut between retained and discarded modes splits a multiple eigenvalue.

    The coarse space is then not unique. ``fit_maps`` issues it too, for maps that are not unique or
    for a retained and a discarded edge of the same energy.
    """


class SingularDegreeWarning(UserWarning):
    """A diagonal block of the Laplacian is singular, so its pseudo-inverse was used."""


class SingularProblemWarning(UserWarning):
    """The solution is not unique or depends on rounding, or a coarse sheaf may lose sections."""


class SmallComponentsWarning(UserWarning):
    """Small components use up most clusters, so that a large component gets too few."""


class NotConverged(np.linalg.LinAlgError):
    """An iteration stopped before it reached its tolerance.

    ``result`` holds the last iterate, as the object that the function would return, or None if
    there is none.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.grid_2d_graph(30, 30))
    >>> try:
    ...     E = sc.eigenmodes(F, 5, method="multilevel", tol=3e-15)
    ... except sc.NotConverged as error:
    ...     E = error.result
    >>> E.values.shape
    (5,)
    """

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result
