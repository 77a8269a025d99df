"""Steps (b) and (c) for one level: reduction of clusters, removal of sections supported in one."""

from typing import Any, NamedTuple

import numpy as np

from sheafcoarsen._kernels import sections as kernels
from sheafcoarsen._kernels.coarsening import Loops
from sheafcoarsen._kernels.dense import svd_workspace
from sheafcoarsen._kernels.modes import Blocks, put_columns
from sheafcoarsen._support import ragged, threads
from sheafcoarsen.coarsening import SERIAL_BELOW, realize
from sheafcoarsen.modes import Prolongation, block_layout, kernel_workspace
from sheafcoarsen.operators import degree_factors
from sheafcoarsen.partition import Partition, clusters_of
from sheafcoarsen.sections import clustering
from sheafcoarsen.sections.clustering import Split
from sheafcoarsen.sheaf import CellularSheaf, edge_subset


class Level(NamedTuple):
    """One level: the retained directions R and the removed sections P of the clusters.

    ``split`` holds the copies of hubs if the clusters belong to a sheaf with split hubs.
    """

    R: Prolongation
    P: Prolongation
    split: Split | None = None

    def on_original(self, Y: Any) -> Any:
        """Map columns from the sheaf with split hubs to the original sheaf."""
        return Y if self.split is None else self.split.J @ Y


def reduce_level(
    sheaf: CellularSheaf, partition: Partition, cut: tuple[float, float]
) -> tuple[Level, CellularSheaf, float, float]:
    """Return level, coarse sheaf, and the largest zero and smallest eliminated singular value."""
    clusters = clusters_of(sheaf, partition)
    if (largest := int(clusters.dims.max())) > clustering.LARGEST_LAST:
        raise np.linalg.LinAlgError(
            f"a single stalk of the sheaf or of a coarse level has dimension {largest}, but dense "
            f"factorizations are limited to dimension {clustering.LARGEST_LAST}"
        )
    f, dims, K, dtype = sheaf.arrays, clusters.dims, clusters.n_clusters, sheaf.dtype
    map_size = int((sheaf.edge_dims * sheaf.vertex_dims[sheaf.edges].sum(axis=1)).max(initial=0))
    widths = np.zeros(K, np.int64)

    def count(lo: int, hi: int) -> None:
        n = int(dims[lo:hi].max())
        lapack = svd_workspace(n, n, dtype, map_size)
        kernels.count_kept(lo, hi, f, clusters, cut[0], lapack, widths)

    threads.run_ranges(count, dims**3 + 1.0, serial_below=SERIAL_BELOW)
    starts, loop_starts = ragged.offsets(dims * widths), ragged.offsets(widths**2)
    kept = kernels.Kept(
        widths=widths,
        n_sections=np.zeros(K, np.int64),
        columns=kernels.Ragged(starts, np.empty(int(starts[-1]), dtype)),
        loops=kernels.Ragged(loop_starts, np.empty(int(loop_starts[-1]), dtype)),
        loop_rows=np.zeros(K, np.int64),
        dropped=np.full(K, np.inf),
        zeros=np.zeros(K),
    )
    rows = np.diff(ragged.offsets(sheaf.edge_dims[clusters.internal_edges])[clusters.internal_ptr])
    factors = degree_factors(edge_subset(sheaf, clusters.crossing_edges))
    crossing = rows, kernels.Ragged(*factors)

    def reduce(lo: int, hi: int) -> int:
        n = int(dims[lo:hi].max())
        workspace = kernel_workspace(int(rows[lo:hi].max()) + n, n, dtype, map_size)
        return kernels.reduce_clusters(lo, hi, f, clusters, crossing, cut, workspace, kept)

    cost = dims * (dims + widths) * (dims + 10.0 * widths) * (widths > 0) + 1.0
    check_status(threads.run_ranges(reduce, cost, serial_below=SERIAL_BELOW))
    retained = widths - kept.n_sections

    def block_columns(first: np.ndarray, counts: np.ndarray) -> Prolongation:
        indptr, indices = block_layout(sheaf, clusters, counts)
        data = np.empty(len(indices), dtype)
        out = Blocks(indptr, data, ragged.read_only(counts))
        put_columns(f, clusters, kept.columns.data, starts[:-1] + first, widths, out)
        return Prolongation(sheaf, clusters, counts, indptr, indices, data)

    level = Level(
        block_columns(np.zeros_like(retained), retained), block_columns(retained, kept.n_sections)
    )
    loops = Loops(kept.loop_rows, kept.loops.starts, kept.loops.data)
    coarse = realize(level.R, loops, compress=True)
    zero, dropped = kept.zeros.max(initial=0), kept.dropped.min(initial=np.inf)
    return level, coarse, float(zero), float(dropped)


def check_status(failed: list[int]) -> None:
    """Raise if LAPACK failed; each status is -1 or the cluster on which it failed."""
    for a in failed:
        if a >= 0:
            raise np.linalg.LinAlgError(f"LAPACK failed on cluster {a}")
