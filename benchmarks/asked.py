"""Questions of :mod:`benchmarks.answers` for each size, and their floors."""

from typing import NamedTuple


class Question(NamedTuple):
    """Question about a sheaf, and its floor: a ratio, a number of iterations or seconds."""

    kind: str
    problem: str
    floor: float | None = None
    counted: bool = False  # whether it is one of the four problems whose medians have floors
    pairs: int = 10


class Most(NamedTuple):
    """Maximum iterations and bytes for an eigenproblem that is too large for a yardstick."""

    iterations: int
    memory: float


def _questions(modes, lobpcg, solves, others, flat, products, extensions, cameras):
    for name, floor in modes.items():
        problem, _, k = name.partition(" : ")
        yield Question("modes", problem, floor, pairs=int(k or 10))
    yield from (Question("lobpcg", name, 5) for name in lobpcg)
    yield from (Question("solve", name, counted=True) for name in solves)
    yield from (Question("solve", name) for name in others)
    yield from (Question("iterations", name, most) for name, most in flat.items())
    yield from (Question("products", name, 1.5) for name in products)
    yield from (Question("extension", name, 6) for name in extensions)
    yield Question("strip", f"strip {cameras}", 0.05)


SIZES = {
    "smoke": list(
        _questions(
            {"3-D grid 9": None, "2-D grid 20": None},
            ["2-D grid 20"],
            ["2-D grid 30", "near consistent 900"],
            [],
            {"mixed 900": 32},
            ["2-D grid 20", "2-D grid, six 20", "mixed 900"],
            ["3-D grid, scalar 9"],
            120,
        )
    ),
    "small": list(
        _questions(
            {"3-D grid 20": 4, "2-D grid 100": 1, "bunny": 2, "bunny : 30": 1.5, "wing": 2.5},
            ["city10000"],
            ["2-D grid 100", "bunny", "3-D grid, consistent 20", "near consistent 5000"],
            ["poses 20000", "wing"],
            {"sphere2500": 20, "torus3d": 20, "city10000": 20, "minnesota": 32, "mixed 5000": 32},
            ["bunny", "2-D grid 150", "2-D grid, six 70", "mixed 20000"],
            ["3-D grid, scalar 30", "3-D grid, space 20"],
            683,
        )
    ),
    "medium": list(
        _questions(
            {
                "3-D grid 37": 8,
                "bunny": 2,
                "bunny : 30": 1.5,
                "2-D grid 300": 1.8,
                "poses 100000": 1.6,
                "wing": 2.5,
                "3-D grid 58": Most(iterations=12, memory=0.8e9),
            },
            ["bunny", "city10000"],
            ["2-D grid 200", "bunny", "3-D grid, consistent 37", "near consistent 20000"],
            ["poses 100000", "wing", "feeder", "mixed 20000"],
            {
                "sphere2500": 20,
                "torus3d": 20,
                "city10000": 20,
                "minnesota": 32,
                "3-D grid, consistent 27": 20,
                "3-D grid, consistent 58": 20,
                "3-D grid 58": 20,
                "2-D grid 300": 20,
            },
            ["bunny", "2-D grid 300", "2-D grid, six 100", "mixed 20000"],
            ["3-D grid, scalar 60", "3-D grid, space 40"],
            683,
        )
    ),
}
QUALITIES = {
    "smoke": {"chain 600": None},
    "small": {"chain 20000": 0.7, "bunny": 1.5, "wing": 2},
    "medium": {"chain 100000": 1, "poses 100000": 1.2, "bunny": 1.5, "wing": 2},
}
for _size, _floors in QUALITIES.items():
    SIZES[_size] += [Question("quality", problem, floor) for problem, floor in _floors.items()]
SIZES["large"] = SIZES["medium"]
ROUNDS = {"smoke": 1, "small": 3, "medium": 3, "large": 3}
