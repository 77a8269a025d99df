"""Time answers to questions about large sheaves against other methods that answer them.

    python -m benchmarks.answers [--size smoke|small|medium|large] [--docs] [--only TEXT]

The questions are the ten lowest eigenpairs, linear systems, products with L and extensions. Every
problem runs in a separate process with one thread. Both sides of a ratio run there, interleaved,
and their answers are compared. Figures are medians in processor seconds. A ratio marked >= is a
speed-up over the yardstick; if it is below 1, a note says that ours loses. ``--size medium``, which
takes half an hour and 4 GB, has the problems of the floors; large is the same. ``--docs`` writes
the tables into docs/benchmarks.md.
"""

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

import sheafcoarsen as sc
from benchmarks import child, questions, report, rivals
from benchmarks.answer_tables import figures, markdown
from benchmarks.asked import ROUNDS, SIZES, Most
from benchmarks.report import Row
from benchmarks.sets import largest_component
from benchmarks.timing import paired
from sheafcoarsen.operators import Factors
from sheafcoarsen.solve._solver import grounded
from sheafcoarsen.solve.conjugate_gradients import conjugate_gradients

REPOSITORY = Path(__file__).parent.parent
TOL = 1e-8
MARKER = "answers"
MEDIAN = "medians of the four"


FACTORS_UP_TO = 2e8
"""Number of entries of factors above which a direct solver is not tried."""


# ---------------------------------------------------------------- in a separate process


def answer(question, rounds):
    """Answer one question, and yield its rows."""
    F = questions.build(question.problem)
    kinds = {
        "modes": modes,
        "quality": quality,
        "lobpcg": lobpcg,
        "solve": solve,
        "iterations": iterations,
        "products": products,
        "extension": extension,
        "strip": cameras,
    }
    yield from kinds[question.kind](F, question, rounds)


def timed(candidates, rounds):
    """Time candidates in processor seconds."""
    return paired(candidates, rounds, clock=time.process_time, budget=120.0)


def row(F, question, claim, against, **found):
    return Row(claim, against, question.problem, F.dim_c0, **found)


def compared(F, question, claim, against, times, names, floor=None, note=""):
    """Return a row from the medians of two candidates."""
    ours, theirs = (times.median(name) for name in names)
    ratio = times.ratio(names[1], names[0])
    return row(
        F, question, claim, against, ours=ours, theirs=theirs, ratio=ratio, floor=floor, note=note
    )


def peak(call):
    """Return a call's result and the memory by which it raised the peak, or None if unknown."""
    gc.collect()
    try:
        with open("/proc/self/clear_refs", "w") as stream:
            stream.write("5")  # reset the recorded peak
        before = child.status("VmRSS")
        result = call()
        return result, child.status("VmHWM") - before
    except OSError:
        return call(), None


def agree(what, ours, theirs, norm):
    """Exit with an error if one of our eigenvalues exceeds that of the yardstick.

    Ritz values are never below eigenvalues. Those of the yardstick may be above ours, since
    Lanczos may miss a copy of a multiple eigenvalue.
    """
    worst = float((ours - theirs).max())
    if not worst <= 10 * TOL * norm:
        raise SystemExit(f"{what}: our eigenvalues exceed others by {worst / norm:.2g} norm(L)")


def modes(F, question, rounds):
    """Time the lowest eigenpairs against shift-invert Lanczos."""
    k, floor = question.pairs, question.floor
    norm = float(abs(sc.laplacian(F)).sum(axis=1).max())
    claim, alone = f"{k} lowest eigenpairs", isinstance(floor, Most)

    def ours():
        return sc.eigenmodes(F, k, tol=TOL)

    sc.eigenmodes(questions.build("3-D grid 9"), k, method="multilevel")  # compile the kernels
    begin = time.process_time()
    E, memory = peak(ours)
    seconds = time.process_time() - begin
    note = f"{E.iterations} iterations" + f", {E.method}" * (E.method != "multilevel")
    if alone:
        yield row(F, question, claim, "", sense="<=", ours=seconds, note=note)
        found, most = E.iterations, floor.iterations
        yield row(
            F, question, "iterations of eigenpairs", "", sense="<=", ours=found, floor=most, unit=""
        )
    else:
        times = timed({"ours": ours, "factors": lambda: rivals.lanczos(sc.laplacian(F), k)}, rounds)
        agree(question.problem, E.values, times.answers["factors"], norm)
        names = ("ours", "factors")
        yield compared(F, question, claim, "factors + Lanczos", times, names, floor, note)
    limit = floor.memory if alone else None
    claim = "peak memory of eigenpairs"
    yield row(F, question, claim, "", sense="<=", ours=memory, floor=limit, unit="B")


def quality(F, question, rounds):
    """Time spectra and angles of a coarsening against Lanczos for the eigenvalues only."""
    k = question.pairs
    norm = float(abs(sc.laplacian(F)).sum(axis=1).max())
    C = sc.coarsen(F, sc.select(F, F.n_vertices // 10), int(F.vertex_dims.max()) + 1)
    Q = sc.spectral_quality(C, k)

    def lanczos():
        fine = rivals.lanczos(sc.laplacian(F), k + Q.kernel_fine)
        coarse = rivals.lanczos(sc.laplacian(C.sheaf), k + Q.kernel_coarse)
        return fine[Q.kernel_fine :], coarse[Q.kernel_coarse :]

    times = timed({"ours": lambda: sc.spectral_quality(C, k), "factors": lanczos}, rounds)
    for ours, theirs in zip((Q.fine, Q.coarse), times.answers["factors"], strict=True):
        agree(question.problem, ours[:k], theirs, norm)
    claim, names = f"spectral quality, {k} pairs", ("ours", "factors")
    yield compared(F, question, claim, "factors + Lanczos", times, names, question.floor)


def lobpcg(F, question, rounds):
    """Time the lowest eigenpairs against lobpcg with the fastest pyamg preconditioner."""
    norm = float(abs(sc.laplacian(F)).sum(axis=1).max())
    candidates = {"ours": lambda: sc.eigenmodes(F, 10, tol=TOL)}
    for name, set_up in rivals.pyamg_set_ups(F).items():
        if "Gauss-Seidel" in name and "improved" not in name:
            candidates[name] = lambda set_up=set_up: rivals.lobpcg(F, 10, set_up)
    if len(candidates) == 1:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lobpcg warns if it does not converge
        times = timed(candidates, rounds)
    best = times.fastest(set(candidates) - {"ours"})
    E = times.answers["ours"]
    if abs(times.answers[best] - E.values).max() > 1e-4 * norm:
        best += ", not converged"
        times.seconds[best] = times.seconds[best.removesuffix(", not converged")]
    yield compared(
        F,
        question,
        "10 lowest eigenpairs",
        "lobpcg + pyamg",
        times,
        ("ours", best),
        question.floor,
        best,
    )


class Grounded(NamedTuple):
    """A component with one vertex fixed, and a right-hand side b."""

    sheaf: sc.CellularSheaf
    fixed: np.ndarray
    b: np.ndarray

    @classmethod
    def of(cls, F):
        """Return the largest component of F, with the vertex of its largest stalk fixed."""
        F = largest_component(F)
        fixed = np.arange(F.n_vertices) == F.vertex_dims.argmax()
        free = np.repeat(~fixed, F.vertex_dims)
        x = np.random.default_rng(0).standard_normal(F.dim_c0) * free
        return cls(F, fixed, (sc.laplacian(F) @ x) * free)


def solve(F, question, rounds):
    """Time set-up and one solve to 1e-8; all preconditioners use the same conjugate gradients."""
    F, fixed, b = Grounded.of(F)
    free = np.flatnonzero(np.repeat(~fixed, F.vertex_dims))
    A, right = sc.laplacian(F)[free][:, free].tocsr(), b[free][:, None]
    size = np.linalg.norm(right)
    steps = {}

    def ours(method):
        def ask(solver):
            solver(b, tol=TOL)
            return solver.iterations

        return lambda: sc.Solver(F, method, fixed=fixed), ask

    def theirs(set_up):
        def ask(precondition):
            start, target = np.zeros_like(right), np.array([TOL * size])
            found = conjugate_gradients(A.__matmul__, precondition, right, start, target)
            if found.residuals[0] > 2 * TOL * size:
                raise SystemExit(f"{question.problem}: pyamg did not reach the tolerance")
            return found.steps

        return lambda: rivals.by_columns(set_up()), ask

    both = {"ours": ours("multigrid"), "jacobi": ours("jacobi")}
    both |= {name: theirs(f) for name, f in rivals.pyamg_set_ups(grounded(F, fixed)).items()}
    _, memory = peak(both["ours"][0])
    first, then = {name: [] for name in both}, {name: [] for name in both}
    for _ in range(rounds + 1):
        for name, (set_up, ask) in both.items():
            begin = time.process_time()
            ready = set_up()
            middle = time.process_time()
            steps[name] = ask(ready)
            first[name].append(middle - begin)
            then[name].append(time.process_time() - middle)
    # the first round compiles and is not counted
    first, then = ({k: statistics.median(v[1:]) for k, v in d.items()} for d in (first, then))
    whole = {name: first[name] + then[name] for name in both}
    phases = (("solve phase", then), ("set-up and one solve", whole))

    def beside(claim, against, seconds, name):
        return row(
            F,
            question,
            claim,
            against,
            ours=seconds["ours"],
            theirs=seconds[name],
            ratio=seconds[name] / seconds["ours"],
            note=f"{steps['ours']} : {steps[name]} iterations, {name}" if name in steps else "",
        )

    for against in ("kron", "frames"):
        names = [name for name in both if name.startswith(against)]
        for claim, seconds in phases if names else ():
            yield beside(claim, f"pyamg, {against}", seconds, min(names, key=seconds.get))
    yield beside("set-up and one solve", "block-Jacobi CG", whole, "jacobi")
    if estimated_fill(A) < FACTORS_UP_TO:
        times = timed({"factors": lambda: Factors(A, 1e-12 * abs(A).max())}, rounds)
        factors = times.answers["factors"]
        back = timed({"solve": lambda: factors.solve(right[:, 0])}, rounds)
        then["factors"] = back.median("solve")
        whole["factors"] = then["factors"] + times.median("factors")
        for claim, seconds in phases:
            yield beside(claim, "splu", seconds, "factors")
    count = steps["ours"]
    yield row(F, question, "iterations of the solve", "", sense="<=", ours=count, unit="")
    yield row(F, question, "peak memory of the set-up", "", sense="<=", ours=memory, unit="B")


def estimated_fill(A):
    """Estimate the number of entries of factors, as for a 3-D grid if A has many per row."""
    n = A.shape[0]
    return n ** (4 / 3) * 10 if A.nnz / n > 5 else 30 * n


def iterations(F, question, rounds):
    """Count the iterations of a linear system to 1e-8."""
    F, fixed, b = Grounded.of(F)
    solver = sc.Solver(F, "multigrid", fixed=fixed)
    solver(b, tol=TOL)
    yield row(
        F,
        question,
        "iterations to 1e-8",
        "",
        sense="<=",
        ours=solver.iterations,
        floor=question.floor,
        unit="",
    )


def products(F, question, rounds):
    """Time L x without an assembled L against a product with L."""
    A, operator = sc.laplacian(F), sc.laplacian_operator(F)
    for h in (1, 8, 32):
        X = np.random.default_rng(0).standard_normal((F.dim_c0, h))
        X = X[:, 0].copy() if h == 1 else X
        times = timed({"ours": lambda X=X: operator @ X, "csr": lambda X=X: A @ X}, 20 * rounds)
        if abs(times.answers["ours"] - times.answers["csr"]).max() > 1e-9:
            raise SystemExit(f"{question.problem}: laplacian_operator and csr products differ")
        ratio = times.ratio("ours", "csr")
        yield row(
            F,
            question,
            f"laplacian_operator, {h} column{'s' * (h > 1)}",
            "csr product",
            sense="<=",
            floor=question.floor,
            ours=times.median("ours"),
            theirs=times.median("csr"),
            ratio=ratio,
        )


def extension(F, question, rounds):
    """Time the harmonic extension of values at three vertices."""
    at = [0, F.n_vertices // 2, F.n_vertices - 1]
    values = [np.ones(int(F.vertex_dims[v])) * i for i, v in enumerate(at)]
    times = timed({"ours": lambda: sc.harmonic_extension(F, at, values)}, rounds)
    yield row(
        F,
        question,
        "harmonic extension, 3 fixed",
        "",
        sense="<=",
        ours=times.median("ours"),
        floor=question.floor,
    )


def cameras(F, question, rounds):
    """Time the zero eigenvalues of a strip of cameras."""
    times = timed({"ours": lambda: sc.eigenmodes(F, 4)}, 3 * rounds)
    if times.answers["ours"].n_zero != 3:
        raise SystemExit("the strip must have three zero eigenvalues")
    yield row(
        F,
        question,
        "4 lowest eigenpairs",
        "",
        sense="<=",
        ours=times.median("ours"),
        floor=question.floor,
    )


# ---------------------------------------------------------------- all questions


MEDIANS = {
    ("solve phase", "pyamg, kron"): 3,
    ("solve phase", "pyamg, frames"): 1.5,
    ("set-up and one solve", "pyamg, kron"): 1.5,
    ("set-up and one solve", "pyamg, frames"): 0.75,
}


def medians(rows, counted):
    """Yield rows with the median ratios over the ``counted`` problems."""
    for (claim, against), floor in MEDIANS.items():
        ratios = [
            r.ratio
            for r in rows
            if (r.claim, r.against) == (claim, against) and r.workload in counted
        ]
        if ratios:
            yield Row(claim, against, MEDIAN, 0, floor=floor, ratio=statistics.median(ratios))


def run(size, i):
    """Answer one question in a separate process, and return its rows."""
    threads = dict.fromkeys(
        ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"
    )
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.answers", "--size", size, "--ask", str(i)],
        cwd=REPOSITORY,
        env={**os.environ, **threads},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return [Row(**fields) for fields in json.loads(done.stdout.splitlines()[-1])]


def main():
    """Answer all questions, print the rows, and write JSON or the docs' tables on request."""
    parser = report.parser(__doc__, SIZES)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--docs", action="store_true", help="write into docs/benchmarks.md")
    parser.add_argument("--only", default="", help="only kinds or problems that contain this text")
    parser.add_argument("--ask", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    asked = SIZES[args.size]
    if args.ask is not None:
        warnings.simplefilter("ignore", sc.TiedModesWarning)
        rows = list(answer(asked[args.ask], ROUNDS[args.size]))
        print(json.dumps([asdict(r) for r in rows]))
        return
    data = report.machine()
    data["numba threads"] = data["BLAS threads"] = 1
    print(report.machine_line(data), report.heading(), sep="\n\n", flush=True)
    rows = []
    for i, question in enumerate(asked):
        if args.only not in f"{question.kind} {question.problem}":
            continue
        if not questions.at_hand(question.problem):
            print(f"{question.problem}: SHEAFCOARSEN_DATA is not set", flush=True)
            continue
        for found in run(args.size, i):
            rows.append(found)
            print(line(found), flush=True)
    counted = {q.problem for q in asked if q.counted}
    for found in medians(rows, counted):
        rows.append(found)
        print(line(found), flush=True)
    if args.json:
        report.write_json(args.json, args.size, data, rows)
    if args.docs:
        report.put_table(MARKER, markdown(rows, data))


def line(r):
    """Return a row of the terminal's table."""
    claim = f"{r.claim} / {r.against}" if r.against else r.claim
    problem = f"{r.workload} {r.vertices:,}" if r.vertices else r.workload
    limit = r.limit
    return f"{claim:<42} {problem:<32} {figures(r).replace('**', '')}  {limit}".rstrip()


if __name__ == "__main__":
    main()
