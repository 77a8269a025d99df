"""Time `global_sections` against scipy's eigsh and LOBPCG in the same process.

    python -m benchmarks.sections [--size smoke|small|medium] [--data FOLDER]

Our answers are checked before times are shown: the number of sections, orthonormality, and
norm(delta S) below 1e-13 norm(delta). The residuals of the others are shown. Set-up and compilation
are not timed; figures are medians of interleaved rounds with one BLAS thread. eigsh computes h0 + 1
eigenpairs of L next to zero, by shift-invert with scipy's default factorization ("plain") or with
splu in symmetric mode ("splu"). ``--data`` is a folder with mesh_bunny.off.gz. A low ratio is not
an error.
"""

import gzip
import os
import warnings

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from threadpoolctl import threadpool_limits

import sheafcoarsen as sc
from benchmarks import checks, report, timing

SIZES = {"smoke": (600,), "small": (2000,), "medium": (2000, 20_000)}
ACCURACY = 1e-13


def bundle(n, dim):
    """Return a trivial O(3) bundle in random bases on the 6-nearest-neighbour graph of points."""
    points = np.random.default_rng(7).random((n, dim))
    return sc.gallery.bundle(sc.gallery.nearest_neighbors(points, 6), 3, seed=7)


def bunny(folder):
    """Return the tangent bundle of the bunny, which has no sections."""
    with gzip.open(os.path.join(folder, "mesh_bunny.off.gz"), "rt") as stream:
        words = stream.read().split()
    n, m = int(words[1]), int(words[2])
    points = np.array(words[4 : 4 + 3 * n], float).reshape(n, 3)
    return sc.gallery.tangent_bundle(
        points, np.array(words[4 + 3 * n : 4 + 3 * n + 4 * m], int).reshape(m, 4)[:, 1:]
    )


def eigsh_plain(L, k, shift):
    return scipy.sparse.linalg.eigsh(L, k, sigma=-shift, which="LM", v0=np.ones(L.shape[0]))


def eigsh_splu(L, k, shift):
    shifted = scipy.sparse.csc_array(L + shift * scipy.sparse.eye_array(L.shape[0]))
    options = {"SymmetricMode": True}
    lu = scipy.sparse.linalg.splu(
        shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options
    )
    inverse = scipy.sparse.linalg.LinearOperator(L.shape, lu.solve, dtype=L.dtype)
    return scipy.sparse.linalg.eigsh(
        L, k, sigma=-shift, OPinv=inverse, which="LM", v0=np.ones(L.shape[0])
    )


def lobpcg(L, k, shift):
    start = np.random.default_rng(0).standard_normal((L.shape[0], k))
    jacobi = scipy.sparse.diags_array(1 / L.diagonal())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return scipy.sparse.linalg.lobpcg(L, start, M=jacobi, largest=False, tol=1e-14, maxiter=150)


def shown(name, F, h0, rounds, rivals):
    """Check our answer, print the times of one case, and return ours."""
    L, delta = sc.laplacian(F), sc.coboundary(F)
    size = scipy.sparse.linalg.norm(delta)
    shift = 1e-6 * L.diagonal().max()
    candidates = {"ours": lambda: sc.global_sections(F)}
    candidates |= {rival.__name__: lambda rival=rival: rival(L, h0 + 1, shift) for rival in rivals}
    times = timing.paired(candidates, rounds, budget=240)
    S = times.answers.pop("ours")
    if S.h0 != h0 or S.residual > ACCURACY:
        raise checks.WrongAnswerError(f"{name}: {S}, expected h0 = {h0}")
    checks.require(
        "orthonormality", abs(S.toarray().T @ S.toarray() - np.eye(h0)).max(initial=0), F.dim_c0
    )
    words = [
        (
            f"{name:24s} h0 {S.h0}, residual {S.residual:.0e}, levels {S.levels}, "
            f"{times.median('ours'):.2f} s"
        )
    ]
    for rival, (values, vectors) in times.answers.items():
        order = np.argsort(values)[: max(h0, 1)]
        residual = np.linalg.norm(delta @ vectors[:, order]) / size
        reached = (
            f"residual {residual:.0e}" if h0 else f"smallest eigenvalue {values[order[0]]:.2e}"
        )
        words.append(f"    {rival} / ours {times.ratio(rival, 'ours'):6.2f}   {reached}")
    print("\n".join(words), flush=True)
    return times.median("ours")


def main():
    """Run all cases of the given size."""
    parser = report.parser(__doc__, SIZES)
    parser.add_argument("--data", metavar="FOLDER", default=os.environ.get("SHEAFCOARSEN_DATA"))
    args = parser.parse_args()
    rounds = 1 if args.size == "smoke" else 3
    with threadpool_limits(1, user_api="blas"):
        for n in SIZES[args.size]:
            shown(f"planar bundle {n}", bundle(n, 2), 3, rounds, [eigsh_plain, eigsh_splu, lobpcg])
            # for larger n its factors take minutes and gigabytes
            plain = [eigsh_plain] if n <= 2000 else []
            shown(
                f"3-D bundle {n}",
                bundle(n, 3),
                3,
                1 if n > 2000 else rounds,
                [*plain, eigsh_splu, lobpcg],
            )
        if args.data and args.size != "smoke":
            shown("mesh_bunny", bunny(args.data), 0, rounds, [eigsh_plain, eigsh_splu, lobpcg])
        n = SIZES[args.size][-1]
        once, thrice = (
            shown(f"3-D bundle {k * n}", bundle(k * n, 3), 3, rounds, []) for k in (1, 3)
        )
        print(f"three times the vertices take {thrice / once:.2f} times as long")


if __name__ == "__main__":
    main()
