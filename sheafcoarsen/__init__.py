"""Coarsening of cellular sheaves, exactly and with an account of what was lost.

A sheaf goes in at the bottom, a coarse sheaf comes out, and the coarse sheaf is a sheaf again::

    F = sc.CellularSheaf.connection(graph, transports)   # containers: CellularSheaf, Partition, gallery
    L = sc.laplacian(F)                                  # operators: coboundary, laplacian, normalize, energy
    P = sc.select(F, n_clusters=50)                      # selection
    C = sc.coarsen(F, P, rank=4)                         # local modes, R, the coarse sheaf
    sc.laplacian(C.sheaf)                                # equals C.galerkin(), R* L R
    sc.energy_ledger(C, x)                               # what was lost of a cochain
    sc.spectral_quality(C, k=10)                         # the low spectrum of both; certificate: the fine one enclosed
    sc.verify(C)                                         # every statement of the theory, on this coarsening
    sc.coarsen_levels(F, factor=10, rank=4)              # level after level: pool, lift, ledger, recoarsen
    sc.HiSP(n_modes=4, n_clusters=50)(F, X)              # the paper's pooling layer; readout, diffuse, diffusion_step
    sc.harmonic_extension(F, [0, 5], values)             # least energy; nearest_section(F, x) projects on the global sections
    sc.save("coarse.npz", C)                             # files: save, load, read_g2o, read_graph
    sc.report(C, "coarse.html")                          # one page about it; sc.plot: partition, spectra, ledger, quality, hierarchy

Labels such as ``thm:Galerkin_realization`` in the documentation name statements of the paper "Hierarchical Pooling for Sheaf
Neural Networks".
"""

from importlib.metadata import version

from sheafcoarsen import gallery, plot, ranks
from sheafcoarsen.coarsening import Coarsening, coarsen
from sheafcoarsen.diffusion import diffuse, diffusion_step
from sheafcoarsen.exceptions import SingularDegreeWarning, SingularProblemWarning, TiedModesWarning
from sheafcoarsen.extension import harmonic_extension, nearest_section
from sheafcoarsen.hierarchy import Hierarchy, HierarchyLedger, coarsen_levels
from sheafcoarsen.html_report import report
from sheafcoarsen.io import from_edge_index, from_networkx, load, read_g2o, read_graph, save, to_networkx
from sheafcoarsen.ledger import EnergyLedger, energy_ledger
from sheafcoarsen.modes import LocalModes, local_modes
from sheafcoarsen.operators import (
    LaplacianPattern,
    coboundary,
    edge_energy,
    energy,
    laplacian,
    laplacian_operator,
    normalize,
)
from sheafcoarsen.partition import Partition
from sheafcoarsen.pooling import HiSP, Pooling, readout
from sheafcoarsen.quality import Certificate, SpectralQuality, certificate, spectral_quality
from sheafcoarsen.sections import GlobalSections, cohomology_dims, global_sections
from sheafcoarsen.selection import select
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.unions import disjoint_union, split
from sheafcoarsen.verification import Check, Verification, verify

__version__ = version("sheafcoarsen")

__all__ = [
    "CellularSheaf",
    "Certificate",
    "Check",
    "Coarsening",
    "EnergyLedger",
    "GlobalSections",
    "HiSP",
    "Hierarchy",
    "HierarchyLedger",
    "LaplacianPattern",
    "LocalModes",
    "Partition",
    "Pooling",
    "SingularDegreeWarning",
    "SingularProblemWarning",
    "SpectralQuality",
    "TiedModesWarning",
    "Verification",
    "certificate",
    "coarsen",
    "coarsen_levels",
    "coboundary",
    "cohomology_dims",
    "diffuse",
    "diffusion_step",
    "disjoint_union",
    "edge_energy",
    "energy",
    "energy_ledger",
    "from_edge_index",
    "from_networkx",
    "gallery",
    "global_sections",
    "harmonic_extension",
    "laplacian",
    "laplacian_operator",
    "load",
    "local_modes",
    "nearest_section",
    "normalize",
    "plot",
    "ranks",
    "read_g2o",
    "read_graph",
    "readout",
    "report",
    "save",
    "select",
    "spectral_quality",
    "split",
    "to_networkx",
    "verify",
]
