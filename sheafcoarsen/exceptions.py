"""One warning class for each thing a user may want to silence, and the error of an iteration."""

import numpy as np


class TiedModesWarning(UserWarning):
    """The cut between kept and discarded modes splits a multiple eigenvalue.

    So the coarse space is not unique.
    """


class SingularDegreeWarning(UserWarning):
    """A diagonal block of the Laplacian is singular, and the pseudo-inverse was taken."""


class SingularProblemWarning(UserWarning):
    """The problem has no unique answer, or one that rounding decides."""


class SmallComponentsWarning(UserWarning):
    """Small components hold so many clusters that a large one is left in few, heavy ones."""


class NotConverged(np.linalg.LinAlgError):
    """An iteration ended before it reached its tolerance.

    ``result`` holds what it had found by then, of the type that the function returns.

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
