"""How good a coarsening is."""

from sheafcoarsen.quality.enclosure import Certificate, certificate
from sheafcoarsen.quality.spectra import SpectralQuality, spectral_quality

__all__ = [
    "Certificate",
    "SpectralQuality",
    "certificate",
    "spectral_quality",
]
