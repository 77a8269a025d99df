"""How many modes each cluster keeps."""

from dataclasses import dataclass

import numpy as np

from sheafcoarsen._checks import integer_array, whole_number


@dataclass(frozen=True)
class Fixed:
    """Keep ``r`` modes per cluster, or all where a cluster has fewer."""

    r: int | tuple[int, ...]

    def ranks(self, dims: np.ndarray) -> np.ndarray:
        """Return the ranks for clusters of dimension ``dims``, shape (K,)."""
        return np.minimum(np.asarray(self.r, dtype=np.int64), dims)


def fixed(r) -> Fixed:
    """Keep ``r`` modes in every cluster: what an integer means.

    Parameters
    ----------
    r : int
        At least 0; clipped to N_a where a cluster has fewer modes.

    Examples
    --------
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> sc.ranks.fixed(3).ranks(np.array([2, 5]))
    array([2, 3])
    """
    return Fixed(whole_number("r", r, at_least=0))


def as_rule(rank, n_clusters: int) -> Fixed:
    """Return the rule that ``rank`` stands for: an integer, one integer per cluster, or a rule already."""
    if isinstance(rank, Fixed):
        return rank
    if np.ndim(rank) == 0:
        if isinstance(rank, np.ndarray):
            rank = rank[()]
        return Fixed(whole_number("rank", rank, at_least=0))
    array = np.asarray(rank)
    if array.dtype.kind == "f" and array.size:
        raise TypeError(f"`rank` must hold integers, got dtype {array.dtype}")
    ranks = integer_array("rank", array)
    if len(ranks) != n_clusters:
        raise ValueError(f"`rank` must hold one integer per cluster, {n_clusters} in all, got {len(ranks)}")
    negative = np.flatnonzero(ranks < 0)
    if negative.size:
        a = int(negative[0])
        raise ValueError(f"`rank` must not be negative, got {ranks[a]} for cluster {a}")
    return Fixed(tuple(ranks.tolist()))
