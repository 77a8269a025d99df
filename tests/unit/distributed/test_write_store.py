"""Writing a store from pieces, and errors that leave no valid store."""

import itertools

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from tests.unit.distributed.cases import ARRAYS, ragged_sheaf, same


def pieces_of(F, cuts):
    for lo, hi in itertools.pairwise(cuts):
        tail = F.tail_data[F.tail_offsets[lo] : F.tail_offsets[hi]]
        head = F.head_data[F.head_offsets[lo] : F.head_offsets[hi]]
        yield F.edges[lo:hi], F.edge_dims[lo:hi], tail, head


@pytest.mark.parametrize(
    ("cuts", "part_bytes", "dtype"),
    [
        ([0, 90], 500, np.float64),
        ([0, 1, 30, 30, 90], 1000, np.complex64),
        ([0, 1, 2, 3, 40, 90], 32e6, np.float32),
        ([0, 90], np.inf, np.complex128),
    ],
)
def test_pieces_are_written_as_one_sheaf(cuts, part_bytes, dtype, memory):
    F = ragged_sheaf(dtype)
    src = dist.write_store(memory("src"), F.vertex_dims, pieces_of(F, cuts), part_bytes)
    assert (len(src.parts) == 1) == (part_bytes == np.inf)
    G = dist.open_store(memory("src")).load()
    for name in ARRAYS:
        assert same(getattr(F, name), getattr(G, name))
    assert (src.dim_c0, src.dim_c1, src.dtype) == (F.dim_c0, F.dim_c1, F.dtype)
    assert src.n_bytes == F.tail_data.nbytes + F.head_data.nbytes
    assert src.largest_entry == F.largest_entry


def test_parts_are_about_as_large_as_requested(memory):
    F = ragged_sheaf()
    src = dist.to_store(memory("src"), F, part_bytes=1000)
    sizes = [sum(maps.nbytes for maps in src.maps(p)) for p in range(len(src.parts))]
    largest = 8 * int((F.edge_dims * F.vertex_dims[F.edges].sum(axis=1)).max())
    assert max(sizes) <= 1000 + largest
    assert min(sizes) > 1000 / 2 - largest
    equal = sc.CellularSheaf.constant([[k, k + 1] for k in range(12)])  # 16 bytes per edge
    src = dist.to_store(memory("equal"), equal, part_bytes=32)
    assert src.part_ptr.tolist() == [0, 2, 4, 6, 8, 10, 12]


def test_sheaves_without_edges_or_vertices_can_be_written(memory):
    src = dist.write_store(memory("vertices"), [2, 1], [])
    assert src.load().dim_c0 == 3
    assert dist.write_store(memory("nothing"), np.zeros(0, int), []).load().n_vertices == 0


def test_existing_stores_are_not_overwritten(url, memory):
    F = sc.CellularSheaf.constant([[0, 1]])
    for place in (url, memory):
        dist.to_store(place("src"), F)
        with pytest.raises(FileExistsError, match="exists: remove it"):
            dist.to_store(place("src"), F)
    with open(url("file"), "w") as file:
        file.write("mine")
    with pytest.raises(FileExistsError, match="exists"):
        dist.write_store(url("file"), [1], [])


@pytest.mark.parametrize("kind", ["url", "memory"])
def test_stores_of_interrupted_writes_raise(kind, request):
    place = request.getfixturevalue(kind)

    def interrupted():
        yield GOOD
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dist.write_store(place("src"), [1, 1], interrupted())
    with pytest.raises(FileExistsError, match="whose writing did not end: remove it"):
        dist.write_store(place("src"), [1, 1], [GOOD])
    with pytest.raises(dist.StoreError, match="whose writing did not end: .* or else remove it"):
        dist.open_store(place("src"))


GOOD = ([[0, 1]], 1, [1.0], [1.0])

BAD = [
    (3, TypeError, r"`pieces\[1\]` must be \(edges, edge_dims, tail_data, head_data\)"),
    (GOOD[:3], TypeError, r"`pieces\[1\]` must be"),
    (
        ([[0, 5]], 1, [1.0], [1.0]),
        ValueError,
        r"1\]`: `edges\[0\]` = \(0, 5\) is out of range for 3",
    ),
    (([0, 1], 1, [1.0], [1.0]), ValueError, "2-dimensional"),
    (([[0, 1, 2]], 1, [1.0], [1.0]), ValueError, r"shape \(m, 2\)"),
    (([[0, 1]], 2, [1.0], [1.0, 1.0]), ValueError, r"1\]`: `tail_data` must have shape \(2,\)"),
    (([[0, 1]], 1, [1.0], [1.0, 1.0]), ValueError, r"1\]`: `head_data` must have shape \(1,\)"),
    (([[0, 1]], -1, [1.0], [1.0]), ValueError, "at least 0"),
    (([[0, 1]], 1, [1.0], [np.nan]), ValueError, r"1\]`: `head_maps\[0\]` \(edge 0 -> 1\) must be"),
    (([[0, 1]], 1, [1.0], [1j]), TypeError, "holds complex128, but earlier pieces hold float64"),
    (([[0, 1]], 1, [1.0], ["x"]), TypeError, "must hold float32"),
    (([[0, 1]], 1, [1e300], [1.0]), ValueError, "the maps of all pieces"),
]


@pytest.mark.parametrize(("piece", "error", "message"), BAD)
def test_invalid_pieces_raise_and_are_named(piece, error, message, memory):
    with pytest.raises(error, match=message):
        dist.write_store(memory("src"), [1, 1, 1], [GOOD, piece])
    with pytest.raises(dist.StoreError):
        dist.open_store(memory("src"))


def test_invalid_arguments_raise(memory):
    with pytest.raises(ValueError, match="`part_bytes` must be at least 1"):
        dist.write_store(memory("src"), [1], [], part_bytes=0)
    with pytest.raises(TypeError, match="`pieces` must be an iterable of .*, got int"):
        dist.write_store(memory("src"), [1], 5)
    with pytest.raises(ValueError, match="`vertex_dims` must not be negative"):
        dist.write_store(memory("src"), [1, -1], [])
