"""Stages of the benchmark: each function times one stage of the library against yardsticks.

It checks all answers and yields rows of the table.
"""

import inspect
import statistics

import numpy as np

import sheafcoarsen as sc
from benchmarks import checks, child, peers, workloads
from benchmarks.case import RANK, Case
from benchmarks.timing import paired

SAMPLE, SLICED = 2500, 100
"""Number of clusters that peers solve, and that the slow slicing loop solves; times are scaled."""
PAUSE = 0.15
"""Idle seconds before each call that runs with the default number of BLAS threads."""


# ---------------------------------------------------------------- the fine Laplacian


def touched(pattern, F):
    """Return a Laplacian filled with zeros, so that a refill that does nothing is detected."""
    out = pattern.fill(F)
    out.data[...] = 0
    return out


def refill(case, rounds):
    """Time the refill of L in memory that has been written before, against streaming its bytes."""
    F, pattern = case.F, sc.LaplacianPattern(case.F, case.format)
    out = touched(pattern, F)
    ordered, uniform = case.name in workloads.ORDERED, peers.uniform(F)
    candidates = {
        "refill": lambda: pattern.fill(F, out=out),
        "stream": peers.Stream(F, out.data.size),
    }
    if ordered and uniform:
        batched = peers.BatchedRefill(F, out)
        candidates["batched"] = lambda: batched(F)
    times = paired(candidates, 3 * rounds)
    maps = np.concatenate([F.tail_data, F.head_data])
    checks.require(
        "sum of the maps",
        abs(times.answers["stream"].sum() - maps.sum()),
        len(maps) * abs(maps).sum(),
    )
    case.check_laplacian(times.answers["refill"])
    claim = f"refill of L, neighbours {'near' if ordered else 'far from'} each other"
    floor = {(True, True): 1.5, (False, True): 4, (True, False): 6, (False, False): 10}[
        ordered, uniform
    ]
    yield case.compare(claim, "streaming the same bytes", times, ("refill", "stream"), "<=", floor)
    if ordered and uniform:
        case.check_laplacian(times.answers["batched"])
        yield case.compare(
            "refill of L",
            "numpy, batched products and sums",
            times,
            ("refill", "batched"),
            floor=12,
        )


def assembly(case, rounds):
    """Time the computation of L's pattern and values against delta* delta."""
    F, out = case.F, touched(sc.LaplacianPattern(case.F, case.format), case.F)
    times = paired(
        {
            "ours": lambda: sc.LaplacianPattern(F, case.format).fill(F, out=out),
            "scipy": lambda: peers.scipy_laplacian(F),
        },
        rounds,
    )
    case.check_laplacian(times.answers["ours"])
    case.check_laplacian(times.answers["scipy"])
    yield case.compare(
        "pattern and values of L", "scipy, delta* delta", times, ("ours", "scipy"), floor=5
    )


# ---------------------------------------------------------------- clusters and modes


def selection(case, rounds):
    """Time select against KaMinPar, and compare the cuts."""
    claim, against, F, k = "select", "KaMinPar, fast preset", case.F, case.n_clusters
    kaminpar = peers.installed("kaminpar")
    if kaminpar is None:
        yield case.row(claim, against, floor=3, note="not installed")
        return
    times = paired({"ours": case.select, "theirs": peers.KaMinPar(kaminpar, F, k)}, rounds)
    P, labels = times.answers["ours"], times.answers["theirs"]
    checks.connected(P, F.edges)
    if P.n_clusters != k:
        raise checks.WrongAnswerError(f"{P.n_clusters} clusters instead of {k}")
    if labels.shape != (F.n_vertices,) or labels.min() < 0 or labels.max() >= k:
        raise checks.WrongAnswerError("KaMinPar: labels out of range")
    cuts, largest = [], []
    for found in (P.labels, labels):
        weights = np.bincount(found, F.vertex_dims, k)
        cuts.append(float(np.mean(np.diff(found[F.edges], axis=1) != 0)))
        largest.append(weights.max() / weights.mean())
    yield case.compare(claim, against, times, ("ours", "theirs"), floor=3)
    yield case.row(
        "edges cut by select",
        against,
        sense="<=",
        floor=1.05,
        ours=cuts[0],
        theirs=cuts[1],
        ratio=cuts[0] / cuts[1],
        note=f"largest cluster {largest[0]:.2f} : {largest[1]:.2f} of the mean",
        unit="",
    )


def local_modes(case, rounds):
    """Time the lowest modes of all clusters against loops over a sample, scaled up."""
    K, claim = case.n_clusters, f"{RANK} local modes"
    chosen, few = (
        np.unique(np.linspace(0, K - 1, count).astype(int)) for count in (SAMPLE, SLICED)
    )
    blocks = peers.dense_blocks(case.M, case.internal, chosen)
    stacks = peers.by_size(blocks)
    times = paired(
        {
            "ours": case.local_modes,
            "scipy": lambda: peers.scipy_modes(blocks, RANK),
            "batched": lambda: peers.batched_modes(stacks),
            "sliced": peers.SlicedModes(case.F, case.P, few, RANK),
        },
        rounds,
        PAUSE,
    )
    M = times.answers["ours"]
    checks.local_modes(M, case.internal)
    found = [M.eigenvalues(a) for a in chosen]
    checks.same_spectra(
        "scipy.linalg.eigh", found, [values for values, _ in times.answers["scipy"]], blocks
    )
    for (group, stack), (values, _) in zip(stacks, times.answers["batched"], strict=True):
        checks.same_spectra("numpy.linalg.eigh", [found[i] for i in group], values, stack)
    few_blocks = peers.dense_blocks(M, case.internal, few)
    checks.same_spectra(
        "slices", [M.eigenvalues(a) for a in few], times.answers["sliced"], few_blocks
    )
    for key, against, floor, count in (
        ("scipy", "scipy eigh (evr) loop, blocks ready", 1.8, len(chosen)),
        ("batched", "numpy batched eigh, blocks ready", 3, len(chosen)),
        ("sliced", "slices of delta, product, eigh: a loop", None, len(few)),
    ):
        yield case.compare(claim, against, times, ("ours", key), floor=floor, scale=K / count)


def blas_threads(case, rounds):
    """Time local modes with the default number of BLAS threads against one BLAS thread."""

    def limited():
        with peers.one_thread():
            return case.local_modes()

    times = paired({"default": case.local_modes, "limited": limited}, rounds, PAUSE)
    checks.local_modes(times.answers["default"], case.internal)
    claim = f"{RANK} local modes, BLAS at its default"
    yield case.compare(claim, "BLAS limited by the user", times, ("default", "limited"), "<=", 1.1)


# ---------------------------------------------------------------- the coarse sheaf


def coarse_operator(case, rounds):
    """Time the coarse maps and the coarse L against sparse triple products."""
    F, P, M, R = case.F, case.P, case.M, case.M.prolongation
    fine = case.L.tocsr()
    candidates = {
        "csr": lambda: sc.laplacian(sc.coarsen(F, P, M).sheaf),
        "scipy csr": lambda: peers.triple_product(R, fine),
    }
    blocks = case.format == "bsr" and (M.ranks == RANK).all()
    if blocks:
        block_R = peers.prolongation_bsr(M)
        candidates["bsr"] = lambda: sc.laplacian(sc.coarsen(F, P, M).sheaf, "bsr")
        candidates["scipy bsr"] = lambda: peers.triple_product(block_R, case.L)
    times = paired(candidates, rounds)
    for answer in times.answers.values():
        checks.same_coarse(
            "the coarse L", answer, times.answers["scipy csr"], fine, M.clusters.dims.max()
        )
    claim = "coarse sheaf and its L"
    yield case.compare(claim, "scipy R* (L R), csr", times, ("csr", "scipy csr"), floor=5)
    if blocks:
        yield case.compare(claim, "scipy R* (L R), bsr", times, ("bsr", "scipy bsr"), floor=2)


def compression(case, rounds):
    """Time how much the compression of edge stalks adds to the set-up of a level."""
    claim, against = "compression of edge stalks", "set-up of its level"
    if "compress" not in inspect.signature(sc.coarsen).parameters:
        yield case.row(claim, against, sense="<=", floor=0.15)
        return
    F, P, M = case.F, case.P, case.M
    times = paired(
        {
            "plain": lambda: sc.coarsen(F, P, M),
            "compressed": lambda: sc.coarsen(F, P, M, compress=True),
            "level": case.coarsened,
        },
        rounds,
    )
    C = times.answers["compressed"]
    case.check_coarse(C, sc.laplacian(C.sheaf), case.L)
    rows = zip(*(times.seconds[key] for key in ("compressed", "plain", "level")), strict=True)
    shares = [(compressed - plain) / level for compressed, plain, level in rows]
    ours = max(times.median("compressed") - times.median("plain"), 0.0)
    ratio = statistics.median(shares)
    level = times.median("level")
    yield case.row(claim, against, sense="<=", floor=0.15, ours=ours, theirs=level, ratio=ratio)


def recoarsen(case, rounds):
    """Time recoarsening with new maps on the same graph against coarsening from scratch."""
    claim, against = "recoarsen with new maps", "select and coarsen"
    C, F = sc.coarsen(case.F, case.P, case.M), workloads.other_maps(case.F)
    if not hasattr(C, "recoarsen"):
        yield case.row(claim, against, sense="<=", floor=0.95)
        return
    times = paired(
        {
            "ours": lambda: C.recoarsen(F),
            "anew": lambda: sc.coarsen(F, sc.select(F, case.n_clusters, "balls"), RANK),
        },
        rounds,
    )
    L, internal = peers.scipy_laplacian(F), peers.internal_laplacian(F, case.P)
    for answer in times.answers.values():
        case.check_coarse(answer, sc.laplacian(answer.sheaf), L)
        checks.local_modes(answer.modes, internal)
    # the clusters are the same, because select depends on the graph only
    scores, wanted = (times.answers[key].modes.scores for key in ("ours", "anew"))
    checks.require(
        "the lowest modes", abs(scores - wanted), C.clusters.dims.max() * abs(L).sum(axis=0).max()
    )
    yield case.compare(claim, against, times, ("ours", "anew"), "<=", 0.95)


def whole(case, rounds):
    """Time the full set-up against that of an algebraic multigrid solver.

    Both use the default number of BLAS threads.
    """
    claim, against = "select, coarsen, L and coarse L", "pyamg smoothed aggregation, L ready"
    floor = 0.6 if peers.uniform(case.F) else 1.2
    candidates = {"ours": case.whole}
    pyamg = peers.installed("pyamg")
    if pyamg:
        candidates["pyamg"] = peers.SmoothedAggregation(pyamg, case.F, case.L)
    times = paired(candidates, rounds, PAUSE)
    case.check_whole(times.answers["ours"])
    if pyamg is None:
        yield case.row(
            claim, against, sense="<=", floor=floor, ours=times.median("ours"), note="not installed"
        )
        return
    fine, coarse = times.answers["pyamg"].levels[:2]
    checks.same_products(
        "pyamg's coarse operator",
        coarse.A,
        fine.R @ fine.A @ fine.P,
        int(np.diff(fine.P.tocsc().indptr).max()),
    )
    yield case.compare(claim, against, times, ("ours", "pyamg"), "<=", floor)


# ---------------------------------------------------------------- sizes and processes of their own


def growth(sizes, rounds):
    """Time the full set-up of W1 at several sizes."""
    cases = {n: Case("W1", n) for n in sizes}
    times = paired({n: case.whole for n, case in cases.items()}, rounds)
    for n, case in cases.items():
        case.check_whole(times.answers[n])
    each = [times.median(n) / n for n in sizes]
    note = (
        f"us per vertex for n = {', '.join(f'{n:,}' for n in sizes)}: "
        f"{', '.join(f'{1e6 * t:.3g}' for t in each)}"
    )
    first, last = sizes[0], sizes[-1]
    ratio = times.ratio(last, first) * first / last
    claim, against = f"time per vertex, n = {last:,}", f"n = {first:,}"
    yield cases[last].row(
        claim, against, sense="<=", floor=1.5, ours=each[-1], theirs=each[0], ratio=ratio, note=note
    )


def memory(case, rounds):
    """Measure the peak memory in addition to the input, in a separate process."""
    for claim, option in (
        ("peak memory of select and coarsen", ()),
        ("peak memory with L and coarse L", ("L",)),
    ):
        found = child.run("memory", case.name, case.F.n_vertices, *option)
        row = case.row(
            claim, "arrays returned", sense="<=", floor=1.5, unit="B", note="needs /proc"
        )
        if found["peak"] is not None:
            row = case.row(
                claim,
                "arrays returned",
                sense="<=",
                floor=1.5,
                unit="B",
                ours=found["peak"],
                theirs=found["returned"],
                ratio=found["peak"] / found["returned"],
            )
        yield row


def threads(case, rounds):
    """Time one thread against two, in separate processes that alternate."""
    half = (rounds + 1) // 2
    runs = [
        [
            child.run("threads", case.name, case.F.n_vertices, half, threads=count)
            for count in (1, 2)
        ]
        for _ in "ab"
    ]
    for key, claim in (
        ("modes", f"{RANK} local modes"),
        ("whole", "select, coarsen, L and coarse L"),
    ):
        one, two = (statistics.median(run[i][key] for run in runs) for i in (0, 1))
        ratio = statistics.median(first[key] / second[key] for first, second in runs)
        yield case.row(f"{claim}, 2 threads", "1 thread", ours=two, theirs=one, ratio=ratio)


def second_process(case, rounds):
    """Time import and first use in a process that finds compiled kernels in the cache."""
    child.run("start")
    found = [child.run("start") for _ in range(3)]
    imported = statistics.median(one["import"] for one in found)
    both = statistics.median(one["import"] + one["coarsen"] for one in found)
    yield case.row(
        "second process: import and a small coarsening", "", sense="<=", floor=3, ours=both
    )
    yield case.row("of which import", "", sense="<=", floor=1, ours=imported)


STAGES = (
    assembly,
    selection,
    local_modes,
    blas_threads,
    coarse_operator,
    compression,
    recoarsen,
    whole,
)
