"""Loops of :mod:`sheafcoarsen.modes`, one cluster after the other.

``local`` puts a cluster's operator together, ``modes`` finds its lowest modes, ``blocks`` holds
what they are written to: R. The oversampled ones look at ``patches``, whose sections
``patch_kernel`` finds, and come from ``oversampled``.
"""

from sheafcoarsen._kernels.modes.blocks import (
    Blocks,
    block_indices,
    has_block_indices,
    put_columns,
    put_modes,
)
from sheafcoarsen._kernels.modes.local import assemble, cluster_unit
from sheafcoarsen._kernels.modes.modes import (
    ModesOut,
    SpectraOut,
    kernel_dims,
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
from sheafcoarsen._kernels.modes.patch_kernel import PatchWorkspace
from sheafcoarsen._kernels.modes.patches import (
    Neighbours,
    Patches,
    PatchIndex,
    grow_patches,
)

__all__ = [
    "BORDER",
    "SHIFT",
    "Blocks",
    "ModesOut",
    "Neighbours",
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
    "has_block_indices",
    "kernel_dims",
    "local_modes",
    "local_spectra",
    "oversampled_modes",
    "oversampled_spectra",
    "put_columns",
    "put_modes",
    "singular_modes",
]
