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

**Algorithm** (``_global_sections``). Every cluster retains a subspace that contains the
restrictions of all sections; these subspaces are the stalks of a coarse sheaf with the same H^0.
The number of levels is logarithmic and the work linear in the size of the sheaf. The steps are:

(a) ``equilibration.equilibrate`` scales the maps [A | -B] of every edge to norm 1 and changes the
    basis of every stalk such that the stacked maps at the vertex are an isometry. Zero can then be
    decided relative to 1.
(b) ``clustering.choose_clusters`` selects clusters, and ``reduction.reduce_level`` eliminates
    coordinates in each of them, largest pivot first, while the pivot exceeds keep^2. The retained
    subspace is {x : delta_I* delta_a x = 0}, where I are the eliminated coordinates. It contains
    the local sections; loop-cells carry the energy of its other vectors.
(c) ``reduction.reduce_level`` also removes the common kernel of all crossing maps and the loop,
    which consists of sections supported in one cluster. Few dimensions then remain even if there
    are many sections.
(d) ``coarsening.realize`` compresses the edges, and step (b) is repeated until
    ``rank_decision.right_singular_vectors`` can decompose the remaining sheaf. Its singular values
    up to ``zero_threshold`` count as zero, and ``doubt`` checks whether this decision is clear. If
    coarsening stalls, as on expanders, ``full_rank`` checks whether delta has independent rows or
    columns.

For forests, ``forests.forest_sections`` proceeds from the leaves to the roots, with an accuracy
that does not depend on the depth of the trees. In other graphs, ``without_chains`` eliminates
leaves and chains, to which sections are extended at the end. ``lifting.lift_sections`` lifts the
sections through the levels and orthonormalizes them.

The module ``boundary`` checks values given at vertices, for :mod:`sheafcoarsen.solve`.
"""

from sheafcoarsen.sections._global_sections import (
    GlobalSections,
    cohomology_dims,
    find_sections,
    global_sections,
)
from sheafcoarsen.sections.boundary import given_values

__all__ = [
    "GlobalSections",
    "cohomology_dims",
    "find_sections",
    "given_values",
    "global_sections",
]
