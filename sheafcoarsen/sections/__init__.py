"""Global sections: the cochains x with delta x = 0.

A flat bundle of rotations, given by a change of frames at the vertices, has as many sections as its
stalks have dimensions; one with nontrivial holonomy has fewer, or none:

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
The number of levels is logarithmic, the work linear. The steps, each with its function:

(a) ``equilibration.equilibrate``: every edge's [A | -B] is scaled to norm 1 and every stalk gets a
    basis in which the stacked maps at the vertex are an isometry: zero is decided relative to 1.
(b) ``clustering.choose_clusters``, ``reduction.reduce_level``: in each cluster coordinates are
    eliminated, largest pivot first, while a pivot exceeds keep^2. The retained subspace is {x :
    delta_I* delta_a x = 0}, with I the eliminated coordinates; it contains the local sections, and
    loop cells carry the energy of the others.
(c) ``reduction.reduce_level``: the common kernel of all crossing maps and the loop consists of
    sections supported in one cluster. They are removed, so that few dimensions remain if there are
    many sections.
(d) ``coarsening.realize`` compresses the edges, and (b) begins again, until
    ``rank_decision.right_singular_vectors`` can decompose the rest; ``zero_threshold`` is the level
    of zero there and ``doubt`` checks whether the decision is clear. If coarsening stalls, as on
    expanders, ``full_rank`` checks whether delta has independent rows or columns.

For forests ``forests.forest_sections`` proceeds from the leaves to the roots, with accuracy
independent of the depth of the trees. ``without_chains`` eliminates the leaves and chains of other
graphs, and the sections are extended to them at the end.

``lifting.lift_sections`` lifts the sections through the levels and makes them orthonormal.

Two modules serve :mod:`sheafcoarsen.solve`: ``boundary`` checks values given at vertices,
``factorization_cost.fills_little`` compares the cost of sparse factors with that of iterating.
"""

from sheafcoarsen.sections._global_sections import (
    GlobalSections,
    cohomology_dims,
    find_sections,
    global_sections,
)
from sheafcoarsen.sections.boundary import given_values
from sheafcoarsen.sections.factorization_cost import fills_little

__all__ = [
    "GlobalSections",
    "cohomology_dims",
    "fills_little",
    "find_sections",
    "given_values",
    "global_sections",
]
