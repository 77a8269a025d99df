"""Measure how well coarse sheaves preserve the low spectrum.

The study compares local operators, coarse dimensions, cluster sizes and selection methods:

    python -m benchmarks.fidelity [--size smoke|full] [--out FOLDER] [--docs]

Every figure is the mean relative error (nu - lambda) / lambda of the first 10 positive eigenvalues,
nu being those of R* L R; 1 means that they are twice the correct values. ``global sections`` counts
zero eigenvalues, coarse : fine. Ranks are chosen by the scores of all modes together
(``sc.ranks.budget``). "principal" is the block of L that the paper's layer uses, "internal" the
operator of its theory; "oversampled q" includes q rings of neighbours around the cluster. If
``SHEAFCOARSEN_DATA`` is set, there are six more sets; ``--size full`` takes about ten minutes.

Tables (fidelity.md) and figures are written to FOLDER; ``--docs`` writes the tables into
docs/fidelity.md.
"""

import statistics
import time
import warnings
from pathlib import Path

import numpy as np

import sheafcoarsen as sc
from benchmarks import report, sets

COUNT = 10
DOCS = Path(__file__).parent.parent / "docs" / "fidelity.md"
MARK = "<!-- study -->\n"
OPERATORS = {
    "principal": {"local_operator": "principal"},
    "internal": {"local_operator": "internal"},
    "oversampled 1": {"local_operator": "oversampled", "rings": 1},
    "oversampled 2": {"local_operator": "oversampled", "rings": 2},
    "oversampled 3": {"local_operator": "oversampled", "rings": 3},
}
FRACTIONS = (0.1, 0.2, 0.3, 0.5)
CLUSTERS = (20, 40, 80)
METHODS = ("metis", "balls", "matching", "spectral")
STYLES = {  # distinguishable in greyscale and by colour-blind readers
    "principal": ("#000000", "x", ":"),
    "internal": ("#0072b2", "o", "-"),
    "oversampled 1": ("#d55e00", "s", "--"),
    "oversampled 2": ("#009e73", "^", "-."),
    "oversampled 3": ("#cc79a7", "D", (0, (1, 1))),
}


class Case:
    """A sheaf with its partitions, each of which is computed once."""

    def __init__(self, name, F):
        self.name, self.F, self.partitions = name, F, {}

    def partition(self, size=40, method="metis"):
        """Return clusters of about ``size`` vertices."""
        if (size, method) not in self.partitions:
            count = max(1, round(self.F.n_vertices / size))
            self.partitions[size, method] = sc.select(self.F, count, method)
        return self.partitions[size, method]

    def error(self, operator, fraction=0.3, size=40, method="metis"):
        """Return the mean relative error, and the numbers of coarse and of fine global sections.

        Returns None if the spectrum did not converge.
        """
        rank = sc.ranks.budget(int(fraction * self.F.dim_c0))
        C = sc.coarsen(self.F, self.partition(size, method), rank, **OPERATORS[operator])
        try:
            Q = sc.spectral_quality(C, COUNT)
        except np.linalg.LinAlgError:
            return None
        return float(Q.relative_errors[:COUNT].mean()), Q.kernel_coarse, Q.kernel_fine

    def seconds(self, rounds=3):
        """Return the median time of local modes at 0.3 n for each operator, without compilation."""
        P, rank, times = (
            self.partition(),
            sc.ranks.budget(int(0.3 * self.F.dim_c0)),
            {key: [] for key in OPERATORS},
        )
        for _ in range(rounds + 1):
            for key, options in OPERATORS.items():
                start = time.perf_counter()
                sc.local_modes(self.F, P, rank, **options)
                times[key].append(time.perf_counter() - start)
        return {key: statistics.median(found[1:]) for key, found in times.items()}


def shown(found):
    """Return the text of a table cell."""
    return "not converged" if found is None else f"{found[0]:.2g}"


def table(title, heads, rows):
    """Return a markdown table."""
    lines = [f"## {title}", "", "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows), ""])


def against_operators(cases):
    """Yield the errors of all local operators for two coarse dimensions."""
    for fraction in (0.3, 0.1):
        found = {case.name: {key: case.error(key, fraction) for key in OPERATORS} for case in cases}
        yield fraction, found


def study(cases, out):
    """Run the study, return the markdown, and write the figures if ``out`` is a folder."""
    parts, drawn = [], {}
    names = [case.name for case in cases]
    size = ", ".join(
        f"{case.name} {case.F.n_vertices:,} vertices (dim C^0 {case.F.dim_c0:,})" for case in cases
    )
    parts.append(f"Sets: {size}.\n")
    for fraction, found in against_operators(cases):
        drawn[fraction] = found
        rows = [[key, *(shown(found[name][key]) for name in names)] for key in OPERATORS]
        for better in ("oversampled 1",):
            ratio = [
                found[n]["internal"][0] / found[n][better][0]
                if found[n][better] and found[n]["internal"]
                else np.nan
                for n in names
            ]
            rows.append([f"internal / {better}", *(f"{r:.3g}" for r in ratio)])
        parts.append(
            table(
                f"Error at coarse dimension {fraction} n, METIS clusters of 40", ["", *names], rows
            )
        )
        if fraction == 0.3:
            kept = [
                [
                    key,
                    *(
                        "-" if found[n][key] is None else f"{found[n][key][1]} : {found[n][key][2]}"
                        for n in names
                    ),
                ]
                for key in OPERATORS
            ]
            parts.append(table("Global sections, coarse : fine", ["", *names], kept))
    seconds = {case.name: case.seconds() for case in cases}
    rows = [
        [key, *(f"{seconds[n][key] / seconds[n]['internal']:.2g}" for n in names)]
        for key in OPERATORS
    ]
    parts.append(table("Time of the local modes, internal = 1", ["", *names], rows))
    curves = {
        case.name: {key: [case.error(key, f) for f in FRACTIONS] for key in list(OPERATORS)[:3]}
        for case in cases
    }
    rows = [
        [f"{name}, {key}", *(shown(x) for x in curves[name][key])]
        for name in names
        for key in curves[name]
    ]
    parts.append(
        table("Error against coarse dimension", ["", *(f"{f} n" for f in FRACTIONS)], rows)
    )
    compared = ("internal", "oversampled 1")
    rows = [
        [f"{case.name}, {key}", *(shown(case.error(key, size=s)) for s in CLUSTERS)]
        for case in cases
        for key in compared
    ]
    parts.append(
        table(
            "Error at 0.3 n against cluster size, METIS",
            ["", *(f"{s} vertices" for s in CLUSTERS)],
            rows,
        )
    )
    rows = [
        [f"{case.name}, {key}", *(shown(case.error(key, method=m)) for m in METHODS)]
        for case in cases
        for key in compared
    ]
    parts.append(
        table("Error at 0.3 n against selection method, clusters of 40", ["", *METHODS], rows)
    )
    if out is not None:
        draw_operators(names, drawn[0.3], out / "operators.png")
        draw_curves(curves, out / "dimensions.png")
    return "\n".join(parts)


def draw_operators(names, found, path):
    """Plot the errors of all operators on all sets."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.2), layout="constrained")
    ax = figure.add_subplot()
    for key, (colour, marker, _) in STYLES.items():
        points = [
            (i, found[name][key][0]) for i, name in enumerate(names) if found[name][key] is not None
        ]
        ax.plot(
            *zip(*points, strict=True),
            linestyle="",
            marker=marker,
            color=colour,
            markersize=7,
            label=key,
        )
    ax.set_yscale("log")
    ax.set_xticks(range(len(names)), names)
    ax.set_ylabel(f"mean relative error of {COUNT} eigenvalues")
    ax.set_title("Coarse dimension 0.3 n, METIS clusters of 40 vertices", loc="left", fontsize=11)
    ax.grid(axis="y", alpha=0.3)
    ax.legend(
        frameon=False, ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.1), columnspacing=1
    )
    figure.savefig(path, dpi=150)


def draw_curves(curves, path):
    """Plot the error against the coarse dimension, with a panel for each set."""
    from matplotlib.figure import Figure

    columns = 3
    figure = Figure(figsize=(9, 2.6 * -(-len(curves) // columns)), layout="constrained")
    axes = figure.subplots(-(-len(curves) // columns), columns, sharex=True, squeeze=False).ravel()
    for ax, (name, curve) in zip(axes, curves.items(), strict=False):
        for key, found in curve.items():
            colour, marker, style = STYLES[key]
            points = [
                (f, max(x[0], 1e-16))
                for f, x in zip(FRACTIONS, found, strict=True)
                if x is not None
            ]
            if points:
                ax.plot(
                    *zip(*points, strict=True),
                    color=colour,
                    marker=marker,
                    linestyle=style,
                    label=key,
                )
        ax.set_yscale("log")
        ax.set_title(name, loc="left", fontsize=10)
        ax.grid(alpha=0.3)
    for ax in axes[len(curves) :]:
        ax.set_visible(False)
    for ax in axes[max(0, len(curves) - columns) : len(curves)]:
        ax.set_xlabel("coarse dimension / n")
        ax.xaxis.set_tick_params(labelbottom=True)
    axes[0].legend(frameon=False, fontsize=8)
    figure.supylabel(f"mean relative error of {COUNT} eigenvalues", fontsize=10)
    figure.savefig(path, dpi=150)


def main():
    """Run the study, and write the requested files."""
    parser = report.parser(__doc__, ("smoke", "full"), "full")
    parser.add_argument("--out", metavar="FOLDER", type=Path)
    parser.add_argument(
        "--docs", action="store_true", help="write the tables into docs/fidelity.md"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore", sc.TiedModesWarning)
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
    cases = [Case(name, F) for name, F in sets.build(400 if args.size == "smoke" else 4000)]
    text = study(cases, args.out)
    print(text)
    if args.out is not None:
        (args.out / "fidelity.md").write_text(text, encoding="utf-8")
    if args.docs:
        before, _, after = DOCS.read_text(encoding="utf-8").split(MARK)
        DOCS.write_text(before + MARK + text + MARK + after, encoding="utf-8")


if __name__ == "__main__":
    main()
