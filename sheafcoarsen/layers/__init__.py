"""Layers of a sheaf network with given weights: pooling, readout, and a diffusion step.

``_hisp`` is the paper's pooling layer, one level of coarsening with features, and
``_diffusion_step`` the layer that precedes it. ``_readout`` ends a model with one row per graph.

>>> import networkx as nx
>>> import numpy as np
>>> import sheafcoarsen as sc
>>> F = sc.CellularSheaf.constant(nx.path_graph(6), dim=2)
>>> X = sc.diffusion_step(F, np.ones((12, 4)), np.eye(2), np.eye(4))
>>> out = sc.HiSP(n_modes=2, n_clusters=3)(sc.normalize(F), X)
>>> sc.readout(out.x).shape
(8,)
"""

from sheafcoarsen.layers._diffusion_step import diffusion_step
from sheafcoarsen.layers._hisp import HiSP, Pooling
from sheafcoarsen.layers._readout import readout

__all__ = ["HiSP", "Pooling", "diffusion_step", "readout"]
