"""The cellar: numba kernels that know only arrays, trust their input and fill what the caller allocated."""
