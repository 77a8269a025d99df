"""Kernels of :mod:`sheafcoarsen.modes`.

``local`` assembles the operator of a cluster, ``modes`` computes its lowest modes, ``blocks``
writes them to R. ``oversampled`` computes oversampled modes on the ``patches`` around clusters,
whose kernels of delta ``patches`` computes.
"""

from sheafcoarsen._kernels.modes.blocks import Blocks, block_indices, put_columns, put_modes
from sheafcoarsen._kernels.modes.local import assemble, cluster_unit, stack
from sheafcoarsen._kernels.modes.modes import (
    Balanced,
    ModesOut,
    SpectraOut,
    kernel_dims,
    kernel_modes,
    local_modes,
    local_spectra,
    singular_modes,
)
from sheafcoarsen._kernels.modes.oversampled import (
    BORDER,
    SHIFT,
    PatchProblems,
    Responses,
    oversampled_modes,
    oversampled_spectra,
)
from sheafcoarsen._kernels.modes.patches import (
    KernelWorkspace,
    Patches,
    PatchIndex,
    PatchWorkspace,
    grow_patches,
)

__all__ = [
    "BORDER",
    "SHIFT",
    "Balanced",
    "Blocks",
    "KernelWorkspace",
    "ModesOut",
    "PatchIndex",
    "PatchProblems",
    "PatchWorkspace",
    "Patches",
    "Responses",
    "SpectraOut",
    "assemble",
    "block_indices",
    "cluster_unit",
    "grow_patches",
    "kernel_dims",
    "kernel_modes",
    "local_modes",
    "local_spectra",
    "oversampled_modes",
    "oversampled_spectra",
    "put_columns",
    "put_modes",
    "singular_modes",
    "stack",
]
