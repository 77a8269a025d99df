"""Global sections, and cochains nearest to them."""

from sheafcoarsen.sections.harmonic import harmonic_extension
from sheafcoarsen.sections.nearest import nearest_section
from sheafcoarsen.sections.zeroth import GlobalSections, cohomology_dims, global_sections

__all__ = [
    "GlobalSections",
    "cohomology_dims",
    "global_sections",
    "harmonic_extension",
    "nearest_section",
]
