"""Lines and numbers of text files; every error message begins with path and line."""

import gzip
import io
import tracemalloc

import pytest

import sheafcoarsen as sc
from sheafcoarsen.io.text import read_lines


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_do_not_depend_on_the_block_size(tmp_path, monkeypatch, size, end):
    monkeypatch.setattr("sheafcoarsen.io.text.BLOCK", size)
    path = tmp_path / "g.txt"
    for lines in (["äö", "", "longer than a block", ""], ["", "a\x0cb\u2028c"], ["", ""]):
        path.write_bytes(b"\xef\xbb\xbf" + end.join(lines).encode())
        assert list(read_lines(str(path))) == (lines if lines[-1] else lines[:-1])
    path.write_bytes(end.join(["0 1", "1 2", ""]).encode() + b"ab\xff")
    with pytest.raises(ValueError, match=r"g\.txt:3: not a text file: byte 0xff is not UTF-8$"):
        sc.read_graph(path)


def test_gzipped_files_are_read_in_blocks(tmp_path):
    path = tmp_path / "g.txt.gz"
    path.write_bytes(gzip.compress((b"#" + b" a comment" * 120 + b"\n") * 10_000 + b"0 1\n"))
    assert sc.read_graph(path).n_edges == 1  # what the first call loads is not counted
    tracemalloc.start()
    try:
        assert sc.read_graph(path).n_edges == 1
        assert tracemalloc.get_traced_memory()[1] < 8e6  # two thirds of the uncompressed size
    finally:
        tracemalloc.stop()


def test_overlong_lines_raise(tmp_path, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.io.text.BLOCK", 10)
    monkeypatch.setattr("sheafcoarsen.io.text.LONGEST", 100)
    path = tmp_path / "g.txt"
    path.write_bytes(b"0 1\n" + b"0" * 100)
    assert len(list(read_lines(str(path)))) == 2
    path.write_bytes(b"0 1\n" + b"0" * 120)
    with pytest.raises(ValueError, match=r"g\.txt:2: more than 100 bytes without an end of line"):
        sc.read_graph(path)


@pytest.mark.parametrize("name", ["g.txt", "g.mtx", "g.graph", "g.g2o", "g.off"])
def test_refused_files_are_closed(tmp_path, monkeypatch, name):
    """Also while a user keeps the error."""
    files = []

    def recorded(*arguments):
        files.append(io.FileIO(*arguments))
        return files[-1]

    monkeypatch.setattr("sheafcoarsen.io.text.open", recorded, raising=False)
    (tmp_path / name).write_text("a, ,\n" * 3)
    read = {".g2o": sc.read_g2o, ".off": sc.read_mesh}.get(name[1:], sc.read_graph)
    with pytest.raises(ValueError, match=name) as caught:
        read(tmp_path / name)
    assert caught.value.__context__ is not None
    assert [file.closed for file in files] == [True]
