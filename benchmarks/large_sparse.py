"""Time every stage on large sparse sheaves against named yardsticks.

    python -m benchmarks.large_sparse [--size smoke|small|medium|large] [--json FILE] [--docs]

Every answer, ours and the yardstick's, is checked before its time is shown. Set-up and compilation
are not timed; figures are medians of interleaved rounds. A ratio marked >= is the speed-up over the
yardstick; one marked <= is our time or memory over that of the yardstick. The floor is the target
of the library; missing it is not an error. ``--size large`` takes about ten minutes and 10 GB;
``--docs`` writes the table into docs/benchmarks.md.
"""

import warnings
from typing import NamedTuple

import sheafcoarsen as sc
from benchmarks import report, stages
from benchmarks.case import Case


class Size(NamedTuple):
    """Vertices of each workload, number of rounds, and sizes of W1 for the time per vertex."""

    vertices: dict[str, int]
    rounds: int
    growth: tuple[int, ...]
    in_children: tuple[str, ...] = ("W1", "W2", "W3")


SIZES = {
    "smoke": Size({"W1": 600, "W2": 512, "W3": 600}, 1, (300, 600), ("W1",)),
    "small": Size({"W1": 10_000, "W2": 10_648, "W3": 10_000}, 7, (1000, 10_000)),
    "medium": Size({"W1": 100_000, "W2": 103_823, "W3": 50_000}, 5, (10_000, 100_000)),
    "large": Size({"W1": 100_000, "W2": 1_000_000, "W3": 50_000}, 3, (10_000, 100_000, 1_000_000)),
}
OTHER_ORDER = {"W1": "W1 shuffled", "W3": "W3 ordered"}


def measure(size):
    """Run all stages, and yield their rows."""
    for name, n in size.vertices.items():
        case = Case(name, n)
        yield from stages.refill(case, size.rounds)
        if name in OTHER_ORDER:
            yield from stages.refill(Case(OTHER_ORDER[name], n), size.rounds)
        for stage in stages.STAGES:
            yield from stage(case, size.rounds)
        if name in size.in_children:
            yield from stages.memory(case, size.rounds)
        if name == "W1":
            yield from stages.threads(case, size.rounds)
            yield from stages.second_process(case, size.rounds)
    yield from stages.growth(size.growth, size.rounds)


def main():
    """Run all stages, print the rows, and write JSON or its table in the docs on request."""
    parser = report.parser(__doc__, SIZES)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--docs", action="store_true", help="write into docs/benchmarks.md")
    args = parser.parse_args()
    warnings.simplefilter("ignore", sc.TiedModesWarning)
    data = report.machine()
    print(report.machine_line(data), report.heading(), sep="\n\n", flush=True)
    rows = []
    for row in measure(SIZES[args.size]):
        rows.append(row)
        print(report.line(row), flush=True)
    if args.json:
        report.write_json(args.json, args.size, data, rows)
    if args.docs:
        report.put_table("benchmark", report.markdown(rows, data))


if __name__ == "__main__":
    main()
