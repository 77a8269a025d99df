"""Global sections: the cochains x with delta x = 0.

For a flat bundle of rotations, h0 equals the dimension of its stalks; with nontrivial holonomy it
is smaller, or zero:

>>> import numpy as np
>>> import sheafcoarsen as sc
>>> F = sc.gallery.cycle(2000, 0.0)  # rotations of the plane, without holonomy
>>> S = sc.global_sections(F)
>>> S.h0
2
>>> sc.global_sections(sc.gallery.cycle(2000, 0.1)).h0
0

**Algorithm** (``_global_sections``; docs/conventions.md, section 6). Every cluster retains a
subspace that contains the restrictions of all sections; these subspaces are the stalks of a coarse
sheaf with the same H^0. The number of levels is logarithmic, and the work linear.

(a) ``equilibration.equilibrate`` scales edges to norm 1 and changes the basis of every stalk such
    that the stacked maps at the vertex are an isometry. Zero can then be decided relative to 1.
(b) ``clustering.choose_clusters`` selects clusters, and ``clustering.reduce_level`` eliminates
    coordinates in each of them, largest pivot first, while the pivot exceeds keep^2. The retained
    subspace contains the local sections; loop-cells carry the energy of its other vectors.
(c) ``clustering.reduce_level`` also removes the sections supported in one cluster, so that few
    dimensions remain even if there are many sections.
(d) These steps are repeated until ``rank_decision.singular_pairs`` can decompose the
    remaining sheaf; ``doubt`` checks whether its rank is clear. If coarsening is slow, as on
    expanders, ``sections_of_full_rank`` checks whether delta has independent rows or columns.

``forests.forest_sections`` solves forests, with an accuracy that does not depend on their depth.
``lifting.lift_sections`` lifts the sections through the levels and orthonormalizes them.

The module ``boundary`` checks values given at vertices, for :mod:`sheafcoarsen.solve`.
"""

from sheafcoarsen.sections._global_sections import (
    GlobalSections,
    cohomology_dims,
    global_sections,
)
from sheafcoarsen.sections.boundary import given_values
from sheafcoarsen.sections.rank_decision import singular_pairs

__all__ = [
    "GlobalSections",
    "cohomology_dims",
    "given_values",
    "global_sections",
    "singular_pairs",
]
