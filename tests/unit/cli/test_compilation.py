"""``sheafcoarsen compile``: kernels compiled ahead, in processes of their own."""

import warnings

import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.cli import compilation

JOBS = compilation.USUAL + compilation.RARE


@pytest.mark.parametrize("job", JOBS, ids=range(len(JOBS)))
def test_every_compilation_job_runs(job):
    compilation.compile_one(job, "float64")


def test_jobs_run_without_warnings():
    compilation.compile_one(lambda scalar: warnings.warn("an example", stacklevel=2), "float64")


def test_the_kernels_of_all_rules_are_compiled(monkeypatch):
    called = set()
    for name in ("kernel_dims", "local_spectra", "oversampled_spectra", "singular_modes"):
        real = getattr(kernels, name)
        monkeypatch.setattr(
            kernels, name, lambda *args, name=name, real=real: called.add(name) or real(*args)
        )
    for job in compilation.RARE:
        compilation.compile_one(job, "float64")
    assert len(called) == 4


def test_the_kernels_of_verify_are_compiled(monkeypatch):
    called = []
    monkeypatch.setattr(sc, "verify", called.append)
    for job in compilation.USUAL:
        compilation.compile_one(job, "float64")
    assert isinstance(called[0], sc.Coarsening)


def cheap_job(scalar):
    sc.CellularSheaf(np.array([[0, 1]]), *np.ones((2, 1, 1, 1), np.dtype(scalar)))


@pytest.mark.skipif(JIT_IS_OFF, reason="nothing is compiled")
def test_other_processes_compile_kernels_into_the_cache(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compilation, "USUAL", (cheap_job,))
    compilation.compile_kernels(processes=1, progress=True)
    assert list(tmp_path.rglob("*.nbc"))
    assert "100%" in capfd.readouterr().err
