"""Quality of a coarsening: comparison of low spectra, and certified bounds on fine eigenvalues.

``_spectral_quality`` compares eigenvalues and eigenspaces, which ``smallest_singular_values``
computes. ``_certificate`` encloses the lowest fine eigenvalues in terms of coarse ones only.
"""

from sheafcoarsen.quality._certificate import Certificate, certificate
from sheafcoarsen.quality._spectral_quality import SpectralQuality, spectral_quality

__all__ = ["Certificate", "SpectralQuality", "certificate", "spectral_quality"]
