"""Loops of :mod:`sheafcoarsen.modes`."""

from sheafcoarsen._kernels.modes.local import assemble, cluster_unit, store_rows
from sheafcoarsen._kernels.modes.modes import (
    kernel_dims,
    local_modes,
    local_spectra,
    singular_modes,
)
from sheafcoarsen._kernels.modes.oversampled import oversampled_modes, oversampled_spectra
from sheafcoarsen._kernels.modes.patch_kernel import PatchRoom
from sheafcoarsen._kernels.modes.patches import Patches, PatchIndex, diagonal, grow_patches
from sheafcoarsen._kernels.modes.prolongation import block_indices, has_block_indices, place_block

__all__ = [
    "PatchIndex",
    "PatchRoom",
    "Patches",
    "assemble",
    "block_indices",
    "cluster_unit",
    "diagonal",
    "grow_patches",
    "has_block_indices",
    "kernel_dims",
    "local_modes",
    "local_spectra",
    "oversampled_modes",
    "oversampled_spectra",
    "place_block",
    "singular_modes",
    "store_rows",
]
