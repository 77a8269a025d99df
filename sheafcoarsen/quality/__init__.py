"""Quality of a coarsening: comparison of low spectra, and certified bounds on fine eigenvalues.

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> F = sc.CellularSheaf.constant(nx.path_graph(6))
>>> C = sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 2)
>>> sc.spectral_quality(C, 2).relative_errors.round(3)
array([0.042, 0.   ])
>>> lower, upper = sc.certificate(C).interval(sc.spectral_quality(C, 2).coarse)
>>> bool((lower <= upper).all())
True

``_spectral_quality`` compares eigenvalues and eigenspaces, which ``smallest_singular_values``
computes. ``_certificate`` encloses the lowest fine eigenvalues in terms of coarse ones only.
"""

from sheafcoarsen.quality._certificate import Certificate, certificate
from sheafcoarsen.quality._spectral_quality import SpectralQuality, spectral_quality

__all__ = ["Certificate", "SpectralQuality", "certificate", "spectral_quality"]
