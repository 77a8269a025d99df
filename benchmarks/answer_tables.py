"""Tables of :mod:`benchmarks.answers` in docs/benchmarks.md, with one line per problem."""

import textwrap

from benchmarks import report

PHASES = ("solve phase", "set-up and one solve")
SIZES = ("iterations of the solve", "peak memory of the set-up")
SENSES = {">=": "\N{GREATER-THAN OR EQUAL TO}", "<=": "\N{LESS-THAN OR EQUAL TO}"}


def markdown(rows, data):
    """Return all tables and a description of the machine."""
    taken = [*eigenpairs(rows), *systems(rows), *products(rows)]
    shown = {id(row) for _, used in taken for row in used}
    parts = [table for table, _ in taken]
    parts += [others([row for row in rows if id(row) not in shown])]
    return "\n\n".join([*parts, textwrap.fill(f"Measured on {report.machine_line(data)}.", 100)])


def grid(heads, lines):
    """Return a markdown table, right-aligned except for the first column."""
    rule = "|---|" + "---:|" * (len(heads) - 1)
    return "\n".join([f"| {' | '.join(heads)} |", rule, *(f"| {' | '.join(x)} |" for x in lines)])


def name(row):
    """Return the name of the problem and its number of unknowns."""
    return f"{row.workload}, {row.vertices:,}" if row.vertices else row.workload


def limit(row):
    """Return the floor as text, with its sense."""
    return SENSES[row.sense] + row.limit.removeprefix(row.sense) if row.limit else ""


def lost(row):
    """Return a remark if ours is slower than the yardstick."""
    return ", ours loses" * (row.sense == ">=" and row.ratio < 1)


def figures(row):
    """Return a cell: the ratio, a remark if ours loses, both times, and the note."""
    if row.ratio is None:
        value = f"{row.ours:g}" if not row.unit and row.ours is not None else row.result
        return " ".join(filter(None, [value, row.note and f"({row.note})"]))
    sides = []
    if row.ours is not None:
        both = (report.amount(side, row.unit) for side in (row.ours, row.theirs))
        sides.append(" : ".join(both))
    sides += [row.note] if row.note else []
    return f"**{row.ratio:.3g}**{lost(row)}" + (f" ({', '.join(sides)})" if sides else "")


def eigenpairs(rows):
    """Yield the table of eigenpairs against a yardstick, with peak memory, and its rows."""
    lines, used = [], []
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        if not row.claim.endswith("lowest eigenpairs") or row.ratio is None:
            continue
        memory = ""
        used.append(row)
        if following is not None and following.claim == "peak memory of eigenpairs":
            memory = following.result
            used.append(following)
        pairs = row.claim.split()[0]
        lines.append((name(row), pairs, row.against, figures(row), memory, limit(row)))
    if lines:
        heads = ("lowest eigenpairs of", "k", "yardstick", "ratio (ours : yardstick)", "memory")
        yield grid((*heads, "floor"), lines), used


def systems(rows):
    """Yield the table of linear systems, with a column for each yardstick, and its rows."""
    ratios = [row for row in rows if row.claim in PHASES]
    sizes = [row for row in rows if row.claim in SIZES]
    rivals = list(dict.fromkeys(row.against for row in ratios))
    lines, floors = [], []
    for problem in dict.fromkeys(name(row) for row in ratios):
        mine = {(r.claim, r.against): r for r in ratios if name(r) == problem}
        ours = {claim: row.ours for (claim, _), row in mine.items() if row.ours is not None}
        about = {row.claim: row for row in sizes if name(row) == problem}
        times = " / ".join(report.amount(ours[claim], "s") for claim in PHASES if claim in ours)
        cells = [" / ".join(_phases(mine, against)) for against in rivals]
        counts = [figures(about[claim]) if claim in about else "" for claim in SIZES]
        lines.append((problem, times, *cells, *counts))
        bounds = {key: limit(row) for key, row in mine.items() if limit(row)}
        if bounds:
            floors = [
                " / ".join(filter(None, (bounds.get((claim, against)) for claim in PHASES)))
                for against in rivals
            ]
    if lines:
        lines += [("floor of the medians", "", *floors, "", "")] if floors else []
        heads = ("solve phase / with set-up", "ours", *rivals, "iterations", "memory")
        yield grid(heads, lines), [*ratios, *sizes]


def _phases(mine, against):
    """Yield the speed-up over a yardstick in each phase that was compared."""
    for claim in PHASES:
        if (claim, against) in mine:
            ratio = mine[claim, against].ratio
            yield f"**{ratio:.3g}**" if ratio >= 1 else f"{ratio:.3g}"
        elif claim == PHASES[0] and (PHASES[1], against) in mine:
            yield "-"


def products(rows):
    """Yield the table of products with h columns, with a table column for each h, and its rows."""
    used = [row for row in rows if row.claim.startswith("laplacian_operator")]
    columns = list(dict.fromkeys(row.claim.partition(", ")[2] for row in used))
    lines = []
    for problem in dict.fromkeys(name(row) for row in used):
        mine = {r.claim.partition(", ")[2]: r for r in used if name(r) == problem}
        cells = [figures(mine[column]) if column in mine else "" for column in columns]
        lines.append((problem, *cells, limit(next(iter(mine.values())))))
    if lines:
        heads = ("laplacian_operator : csr product", *columns, "floor")
        yield grid(heads, lines), used


def others(rows):
    """Return the table of the remaining rows, with at most one yardstick each."""
    lines = [
        (" : ".join(filter(None, (row.claim, row.against))), name(row), figures(row), limit(row))
        for row in rows
    ]
    return grid(("question", "problem, unknowns", "ours", "floor"), lines)
