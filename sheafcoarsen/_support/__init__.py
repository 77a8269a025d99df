"""Functions that all layers use: checks of arguments, norms, ragged arrays, threads, files.

Every public function converts and checks its arguments once, with these functions; internal
functions and kernels do not check. Messages give the argument in backticks, the expected and the
actual value, and a remedy:

>>> from sheafcoarsen._support import offsets, range_of_blocks, whole_number
>>> whole_number("dim", 2.5)
Traceback (most recent call last):
TypeError: `dim` must be an integer, got 2.5

Ragged data (stalks, maps, clusters) is a flat array with the offsets of its blocks:

>>> starts = offsets([2, 0, 3])
>>> starts
array([0, 2, 2, 5])
>>> range_of_blocks(starts, [0, 2])
array([0, 1, 2, 3, 4])

The modules:

``checks``, ``arrays``
    Checks of single values; of arrays, and of cochains, whose squares must be finite.
``linalg``, ``ragged``
    Norms and thresholds relative to rounding; offsets and blocks.
``surfaces``
    Points in space, and faces between them with areas and normals; exported as a module.
``threads``
    Parallel loops over ranges, with an optional progress bar; a limit of one BLAS thread.
``files``, ``labels``, ``tables``
    Atomic replacement of files; lookup of vertex labels, and their encoding as JSON; tables as
    text and HTML.
"""

from sheafcoarsen._kernels.dense import EPS
from sheafcoarsen._support import surfaces, tables
from sheafcoarsen._support.arrays import (
    SCALARS,
    CochainLike,
    check_range,
    check_squares,
    cochain,
    csr_matrix,
    dimensions,
    finite,
    integer_array,
    is_scalar,
    items,
    range_limits,
    real_array,
    scalar_array,
    scalar_type,
)
from sheafcoarsen._support.checks import (
    MAX_DIMENSION,
    MAX_ENTRIES,
    MAX_VERTICES,
    PathLike,
    Seed,
    check_matplotlib,
    choice,
    file_path,
    first_true,
    flag,
    fraction,
    item_index,
    memory_for_entries,
    optional_module,
    physical_memory,
    random_generator,
    real_number,
    vertex_count,
    whole_number,
)
from sheafcoarsen._support.files import output_path, replacing
from sheafcoarsen._support.labels import (
    Vertices,
    decode_labels,
    encode_labels,
    named_vertices,
    vertex_indices,
    vertex_mask,
)
from sheafcoarsen._support.linalg import (
    RESIDUAL_LIMIT,
    by_real_columns,
    diagonal_blocks,
    eigenvectors,
    eps_of,
    inf_norm,
    norm,
    norms_by,
    ragged_norms,
    residual_ratio,
    scaled_norms,
    zero_energy,
    zero_level,
)
from sheafcoarsen._support.ragged import (
    ReadOnly,
    blocks,
    identities,
    offsets,
    range_of_blocks,
    ranges,
    read_only,
    stacks,
)
from sheafcoarsen._support.tables import counted
from sheafcoarsen._support.threads import (
    bar,
    interruptible,
    run_ranges,
    single_threaded_blas,
    thread_limit,
)

__all__ = [
    "EPS",
    "MAX_DIMENSION",
    "MAX_ENTRIES",
    "MAX_VERTICES",
    "RESIDUAL_LIMIT",
    "SCALARS",
    "CochainLike",
    "PathLike",
    "ReadOnly",
    "Seed",
    "Vertices",
    "bar",
    "blocks",
    "by_real_columns",
    "check_matplotlib",
    "check_range",
    "check_squares",
    "choice",
    "cochain",
    "counted",
    "csr_matrix",
    "decode_labels",
    "diagonal_blocks",
    "dimensions",
    "eigenvectors",
    "encode_labels",
    "eps_of",
    "file_path",
    "finite",
    "first_true",
    "flag",
    "fraction",
    "identities",
    "inf_norm",
    "integer_array",
    "interruptible",
    "is_scalar",
    "item_index",
    "items",
    "memory_for_entries",
    "named_vertices",
    "norm",
    "norms_by",
    "offsets",
    "optional_module",
    "output_path",
    "physical_memory",
    "ragged_norms",
    "random_generator",
    "range_limits",
    "range_of_blocks",
    "ranges",
    "read_only",
    "real_array",
    "real_number",
    "replacing",
    "residual_ratio",
    "run_ranges",
    "scalar_array",
    "scalar_type",
    "scaled_norms",
    "single_threaded_blas",
    "stacks",
    "surfaces",
    "tables",
    "thread_limit",
    "vertex_count",
    "vertex_indices",
    "vertex_mask",
    "whole_number",
    "zero_energy",
    "zero_level",
]
