"""Kernels of :mod:`sheafcoarsen.modes`.

``local`` has the operator of a cluster, the kernel of delta_a and the blocks of R, ``modes`` the
lowest modes, ``oversampled`` those on patches around clusters.
"""

from sheafcoarsen._kernels.modes.local import (
    Blocks,
    KernelWorkspace,
    assemble,
    cluster_unit,
    put_columns,
    put_modes,
    stack,
)
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
    Patches,
    PatchIndex,
    PatchProblems,
    PatchWorkspace,
    Responses,
    grow_patches,
    oversampled_modes,
    oversampled_spectra,
)
