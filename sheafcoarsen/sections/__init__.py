"""Global sections: the cochains on which every edge agrees.

A global section is a cochain on which every edge agrees, delta x = 0. A bundle of rotations that
comes from a change of frames at the vertices has as many as its stalks have dimensions; a
nontrivial holonomy leaves none:

>>> import numpy as np
>>> import sheafcoarsen as sc
>>> F = sc.gallery.cycle(2000, 0.0)  # rotations of the plane along a ring, and none over all
>>> S = sc.global_sections(F)
>>> S.h0
2
>>> sc.global_sections(sc.gallery.cycle(2000, 0.1)).h0
0

**How they are found** (``_global_sections``). Clusters keep what they cannot exclude to be part of
a section, and a coarse sheaf is made of it: one with the same H^0 and fewer dimensions. The numbers
of levels are logarithmic, the work is linear. The steps, each with its function:

(a) ``equilibration.equilibrate``: every edge's [A | -B] is brought to norm 1 and every stalk to a
    basis in which the maps at the vertex, stacked, are an isometry. Zero is decided against 1.
(b) ``clustering.choose_clusters``, ``reduction.reduce_level``: in each cluster coordinates are
    eliminated, largest pivot first, while more than keep^2 of energy is left. Kept is {x : delta_I*
    delta_a x = 0}, I what was eliminated; the local sections lie in it, and loop-cells carry the
    energy of what is not one.
(c) ``reduction.reduce_level``: what all crossing maps kill and the loop too is a section that
    lives in one cluster. It is peeled off, so that few dimensions are carried on where there are
    many sections.
(d) ``coarsening.realize`` compresses the edges, and (b) begins again, until
    ``rank_decision.right_singular_vectors`` can decompose what is left; ``zero_threshold`` says
    what is zero there and ``doubt`` whether that is clear. Where coarsening stalls,
    as on expanders, ``full_rank`` sees whether delta has independent rows or columns.

Forests are simpler: ``forests.forest_sections`` goes from the leaves to the roots, with accuracy
independent of the depth of the trees. Of networks with many leaves and chains ``without_chains``
leaves what has to be coarsened, and they are put back at the end.

``lifting.lift_sections`` comes back up through the levels and makes the basis orthonormal.

What :mod:`sheafcoarsen.solve` asks stands here, too: ``boundary`` reads values given at vertices,
``factorization_cost.fills_little`` tells whether sparse factors cost little beside iterating.
"""

from sheafcoarsen.sections._global_sections import (
    GlobalSections,
    cohomology_dims,
    find_sections,
    global_sections,
)
from sheafcoarsen.sections.boundary import given_values, given_vertices
from sheafcoarsen.sections.factorization_cost import fills_little

__all__ = [
    "GlobalSections",
    "cohomology_dims",
    "fills_little",
    "find_sections",
    "given_values",
    "given_vertices",
    "global_sections",
]
