"""Exact coarsening of cellular sheaves, with an account of what was lost.

The result of coarsening a sheaf is a smaller sheaf. Import as ``import sheafcoarsen as sc``.

Sheaves
    CellularSheaf           vector spaces on a graph's vertices and edges, and the maps between them
    gallery                 example sheaves: bundles, surfaces, point clouds, frameworks
    disjoint_union          the disjoint union of several sheaves
    split                   the parts of such a union
    components              which vertices are connected
    fit_connection          orthogonal maps fitted to signals
    fit_maps                maps with orthonormal rows fitted to signals, on the best edges

Operators
    coboundary              delta as a sparse matrix
    laplacian               L = delta* delta as a sparse matrix
    LaplacianPattern        the sparsity pattern of L, to compute L for new maps repeatedly
    laplacian_operator      x -> delta* delta x, matrix-free
    normalize               the sheaf whose Laplacian is D^-1/2 L D^-1/2
    energy                  norm of delta x squared, the quadratic form of L
    edge_energy             the contribution of each edge to it

Partitions
    Partition               which vertex belongs to which cluster
    select                  a partition by greedy balls, matching, spectra or METIS

Modes and coarsening
    local_modes             the lowest modes of every cluster
    LocalModes              what it returns
    ranks                   rules for the number of modes to keep
    coarsen                 one level: the coarse sheaf, R, and the modes used
    Coarsening              what it returns

Vertices eliminated
    eliminate               the Schur complement that eliminates leaves and chains, as a sheaf
    Elimination             what it returns, with the way to restore these vertices

Fewer edges
    leverages               weight times effective resistance of every edge, for any maps
    sparsify                a sheaf on fewer edges with nearly the same Laplacian
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
    Check                   the result for one of these statements

Levels and pooling
    coarsen_levels          repeated coarsening, level by level
    Hierarchy               what it returns
    HierarchyLedger         what is kept and lost over all levels
    HiSP                    the paper's pooling layer
    Pooling                 what it returns
    readout                 mean, sum or maximum over the vertices of each graph

Sections and diffusion
    global_sections         an orthonormal basis of ker delta
    GlobalSections          what it returns
    cohomology_dims         dimensions of H^0 and H^1
    nearest_section         the orthogonal projection onto ker delta
    harmonic_extension      the extension of values at some vertices to all others
    diffuse                 exp(-t L) X
    transport               parallel extension of vectors to all vertices, by the vector heat method
    diffusion_step          one layer of neural sheaf diffusion with given weights

Figures
    plot                    partitions, spectra, ledgers, surfaces and more as matplotlib figures
    report                  one self-contained HTML page about a coarsening

Equations and eigenvalues
    eigenmodes              the lowest eigenpairs of the sheaf Laplacian
    Eigenmodes              what it returns
    Solver                  linear systems with L, set up once and solved many times
    least_squares           the cochain nearest to data on edges: min norm(delta x - b)
    LeastSquares            what it returns
    transported_frames      near-kernel candidates for pyamg, computed along a spanning tree
    NotConverged            the error of an iteration that did not converge, with its last iterate

Poses
    synchronize             absolute poses, or frames, from measured relative ones
    Synchronization         what it returns, with every edge's disagreement
    PoseCertificate         a lower bound on the cost of all poses
    PoseGraph               measured relative poses, with their information
    Sightings               landmarks seen from poses

Files and other libraries
    save                    write a sheaf, a partition, a hierarchy or a level to one .npz file
    load                    read such a file, which need not be trusted
    read_g2o                a pose graph, or only its rotations as a connection
    write_g2o               a .g2o file of a pose graph, with its own or computed poses
    read_graph              a graph file as a constant or a signed sheaf
    read_mesh               a surface: points and faces
    from_networkx           a sheaf from a directed networkx graph with maps on its edges
    to_networkx             the inverse conversion
    from_edge_index         a sheaf from the edge list of PyTorch Geometric

Warning classes
    TiedModesWarning        a cut between equal eigenvalues: the kept modes are not unique
    SingularDegreeWarning   a degree block that cannot be inverted
    SingularProblemWarning  a solution that is not unique or depends on rounding, or sections that
                            may be lost
    SmallComponentsWarning  small pieces of a graph leave too few clusters for a large one

For sheaves in files that exceed memory, ``import sheafcoarsen.distributed as dist``.

``help(sc.coarsen)``, for example, describes one of these. Labels such as
``thm:Galerkin_realization`` name statements of the paper "Hierarchical Pooling for Sheaf Neural
Networks".
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
