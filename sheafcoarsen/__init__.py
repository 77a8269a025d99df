"""Exact coarsening of cellular sheaves, with an account of what was lost.

A sheaf goes in, a coarse one comes out, and what comes out is a sheaf again. Import as ``import
sheafcoarsen as sc``.

Sheaves
    CellularSheaf           vector spaces on a graph's vertices and edges, and the maps between them
    gallery                 sheaves with known answers, and of data: bundles, meshes, frameworks
    disjoint_union          several sheaves side by side as one
    split                   the parts of such a union again
    components              which vertices are connected
    fit_connection          orthogonal maps fitted to signals
    fit_maps                maps with orthonormal rows fitted to signals, on the best edges

Operators
    coboundary              delta as a sparse matrix
    laplacian               L = delta* delta as a sparse matrix
    LaplacianPattern        where its blocks stand, to be filled with new maps again and again
    laplacian_operator      x -> delta* delta x straight from the maps
    normalize               the sheaf whose Laplacian is D^-1/2 L D^-1/2
    energy                  norm of delta x squared, the quadratic form of L
    edge_energy             the same edge by edge

Partitions
    Partition               which vertex belongs to which cluster
    select                  a partition by breadth-first balls, matching, spectra or METIS

Modes and coarsening
    local_modes             the lowest modes of every cluster
    LocalModes              what it returns
    ranks                   rules for how many of them to keep
    coarsen                 one level: R, the coarse sheaf, and how they came about
    Coarsening              what it returns

Vertices eliminated
    eliminate               leaves and chains solved for: the Schur complement as a sheaf
    Elimination             what it returns, and how they are put back

Fewer edges
    leverages               weight times effective resistance, for every edge and any maps
    sparsify                some of the edges, with nearly the same Laplacian
    Sparsification          what it returns, with computed bounds

Losses, checks, quality
    energy_ledger           norm of delta x squared: what is kept and what is lost
    EnergyLedger            what it returns
    spectral_quality        eigenvalues and eigenspaces of both operators compared
    SpectralQuality         what it returns
    certificate             constants that enclose fine eigenvalues in terms of coarse ones
    Certificate             what it returns
    verify                  every statement of the theory, checked on one coarsening
    Verification            what it returns
    Check                   one line of it

Levels and pooling
    coarsen_levels          level after level
    Hierarchy               what it returns
    HierarchyLedger         what is kept and lost on the whole way down
    HiSP                    the paper's pooling layer
    Pooling                 what it returns
    readout                 mean, sum or maximum over clusters

Sections and diffusion
    global_sections         an orthonormal basis of ker delta
    GlobalSections          what it returns
    cohomology_dims         dimensions of H^0 and H^1
    nearest_section         the orthogonal projection on ker delta
    harmonic_extension      values given at some vertices, extended to the others
    diffuse                 exp(-t L) X
    transport               vectors carried to all vertices, the vector heat method
    diffusion_step          one layer of neural sheaf diffusion with given weights

Pictures
    plot                    partitions, spectra, ledgers, surfaces and more as matplotlib pictures
    report                  one self-contained HTML page about a coarsening

Answers
    eigenmodes              the lowest eigenpairs of the whole sheaf
    Eigenmodes              what it returns
    Solver                  linear systems with L, set up once and solved many times
    least_squares           the cochain nearest to data on edges: min norm(delta x - b)
    LeastSquares            what it returns
    transported_frames      frames carried along a tree: near-kernel candidates for pyamg
    NotConverged            the error of an iteration that ends too early, with what it had

Poses
    synchronize             absolute poses, or frames, from measured relative ones
    Synchronization         what it returns, with every edge's disagreement
    PoseCertificate         a lower bound of the cost of all poses
    PoseGraph               measured relative poses, with their information
    Sightings               landmarks seen from poses

Files and other libraries
    save                    write a sheaf, partition, coarsening or hierarchy to one .npz file
    load                    read it again; safe with files from others, too
    read_g2o                a pose graph, whole or its rotations as a connection
    write_g2o               the way back, with the poses that were found
    read_graph              a graph file as a constant or a signed sheaf
    read_mesh               a surface: points and faces
    from_networkx           a sheaf off a directed networkx graph with maps on its edges
    to_networkx             the way back
    from_edge_index         a sheaf from the edge list of PyTorch Geometric

Warning classes
    TiedModesWarning        a cut between equal eigenvalues: the kept modes are not unique
    SingularDegreeWarning   a degree block that cannot be inverted
    SingularProblemWarning  a question whose answer is not unique or does not exist
    SmallComponentsWarning  small pieces of a graph hold the clusters that a large one would need

Beyond one machine there is ``import sheafcoarsen.distributed as dist``: sheaves in stores.

``help(sc.coarsen)`` tells more of one of them. Labels such as ``thm:Galerkin_realization`` name
statements of the paper "Hierarchical Pooling for Sheaf Neural Networks".
"""

from importlib.metadata import version

from sheafcoarsen import gallery, plot, ranks
from sheafcoarsen.coarsening import Coarsening, EnergyLedger, coarsen, energy_ledger
from sheafcoarsen.elimination import Elimination, eliminate
from sheafcoarsen.exceptions import (
    NotConverged,
    SingularDegreeWarning,
    SingularProblemWarning,
    SmallComponentsWarning,
    TiedModesWarning,
)
from sheafcoarsen.hierarchy import Hierarchy, HierarchyLedger, coarsen_levels
from sheafcoarsen.html_report import report
from sheafcoarsen.io import (
    from_edge_index,
    from_networkx,
    load,
    read_g2o,
    read_graph,
    read_mesh,
    save,
    to_networkx,
    write_g2o,
)
from sheafcoarsen.layers import HiSP, Pooling, diffusion_step, readout
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
from sheafcoarsen.partition import Partition, select
from sheafcoarsen.quality import Certificate, SpectralQuality, certificate, spectral_quality
from sheafcoarsen.sections import GlobalSections, cohomology_dims, global_sections
from sheafcoarsen.sheaf import (
    CellularSheaf,
    components,
    disjoint_union,
    fit_connection,
    fit_maps,
    split,
)
from sheafcoarsen.solve import (
    Eigenmodes,
    LeastSquares,
    Solver,
    Sparsification,
    diffuse,
    eigenmodes,
    harmonic_extension,
    least_squares,
    leverages,
    nearest_section,
    sparsify,
    transport,
    transported_frames,
)
from sheafcoarsen.synchronization import (
    PoseCertificate,
    PoseGraph,
    Sightings,
    Synchronization,
    synchronize,
)
from sheafcoarsen.verification import Check, Verification, verify

__version__ = version("sheafcoarsen")

__all__ = [
    "CellularSheaf",
    "Certificate",
    "Check",
    "Coarsening",
    "Eigenmodes",
    "Elimination",
    "EnergyLedger",
    "GlobalSections",
    "HiSP",
    "Hierarchy",
    "HierarchyLedger",
    "LaplacianPattern",
    "LeastSquares",
    "LocalModes",
    "NotConverged",
    "Partition",
    "Pooling",
    "PoseCertificate",
    "PoseGraph",
    "Sightings",
    "SingularDegreeWarning",
    "SingularProblemWarning",
    "SmallComponentsWarning",
    "Solver",
    "Sparsification",
    "SpectralQuality",
    "Synchronization",
    "TiedModesWarning",
    "Verification",
    "certificate",
    "coarsen",
    "coarsen_levels",
    "coboundary",
    "cohomology_dims",
    "components",
    "diffuse",
    "diffusion_step",
    "disjoint_union",
    "edge_energy",
    "eigenmodes",
    "eliminate",
    "energy",
    "energy_ledger",
    "fit_connection",
    "fit_maps",
    "from_edge_index",
    "from_networkx",
    "gallery",
    "global_sections",
    "harmonic_extension",
    "laplacian",
    "laplacian_operator",
    "least_squares",
    "leverages",
    "load",
    "local_modes",
    "nearest_section",
    "normalize",
    "plot",
    "ranks",
    "read_g2o",
    "read_graph",
    "read_mesh",
    "readout",
    "report",
    "save",
    "select",
    "sparsify",
    "spectral_quality",
    "split",
    "synchronize",
    "to_networkx",
    "transport",
    "transported_frames",
    "verify",
    "write_g2o",
]
