"""Sizes of clusters and of what is decomposed densely, read where they are used: ``sizes.LAST``."""

VERTICES, DIMENSION = 40, 120
"""Size of a cluster, in vertices and in dimensions."""


LAST = 400
"""Dimension at which coarsening ends and a dense singular value decomposition is taken."""


LARGEST_LAST = 6000
"""Dimension up to which that is done where coarsening gets no further."""
