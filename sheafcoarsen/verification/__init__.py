"""Every statement of the theory, checked on one coarsening.

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> F = sc.CellularSheaf.constant(nx.path_graph(4))
>>> V = sc.verify(sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1))
>>> V.passed, V["thm:Galerkin_realization"].how
(True, 'exact')

``run.py`` has the public function and ``result.py`` what it returns. ``statements.py`` has one
function per label of the paper; they judge the numbers in ``evidence.py``, found piece by piece
(``pieces.py``), by dense solvers on small clusters (``dense.py``) and for the normalized sheaf
(``normalization.py``), with the norms of ``norms.py``. ``schur.py`` has the statements about an
elimination.
"""

from sheafcoarsen.verification.norms import Judged, judged
from sheafcoarsen.verification.result import Check, Verification
from sheafcoarsen.verification.run import verify

__all__ = [
    "Check",
    "Judged",
    "Verification",
    "judged",
    "verify",
]
