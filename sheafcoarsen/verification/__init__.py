"""Every statement of the theory, checked on one coarsening."""

from sheafcoarsen.verification.result import Check, Verification
from sheafcoarsen.verification.run import verify

__all__ = [
    "Check",
    "Verification",
    "verify",
]
