"""Lines and numbers of text files; every complaint begins with path and line."""

import gzip
import re
import tracemalloc

import pytest

import sheafcoarsen as sc
from sheafcoarsen.io.text import Words, file_error, read_bytes, read_lines, shown


def refuses(message):
    return pytest.raises(ValueError, match="^" + re.escape(message))


def test_an_error_is_one_line_that_begins_with_its_place():
    assert str(file_error("g.txt", 3, "too\n  long")) == "g.txt:3: too long"
    assert str(file_error("g.txt", None, "empty")) == "g.txt: empty"


def test_words_are_quoted_and_garbage_is_cut():
    assert shown("a'b") == '"a\'b"'
    assert shown("x" * 40) == repr("x" * 40)
    assert shown("x" * 41) == repr("x" * 37 + "...")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_as_editors_end_them_and_nowhere_else(tmp_path, end):
    path = tmp_path / "g.txt"
    path.write_bytes(b"\xef\xbb\xbf" + end.join([b"a\x0cb", "ü\u2028".encode(), b""]))
    assert list(read_lines(str(path))) == ["a\x0cb", "ü\u2028"]
    path.write_bytes(b"")
    assert list(read_lines(str(path))) == []


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_do_not_depend_on_the_blocks_that_are_read(tmp_path, monkeypatch, size, end):
    monkeypatch.setattr("sheafcoarsen.io.text.BLOCK", size)
    path = tmp_path / "g.txt"
    for lines in (["äö", "", "longer than a block", ""], ["", "b"], ["", ""]):
        path.write_bytes(b"\xef\xbb\xbf" + end.join(lines).encode())
        assert list(read_lines(str(path))) == (lines if lines[-1] else lines[:-1])
    path.write_bytes(end.join(["0 1", "1 2", ""]).encode() + b"ab\xff")
    with pytest.raises(ValueError, match=r"g\.txt:3: not a text file: byte 0xff is not UTF-8$"):
        list(read_lines(str(path)))


def test_a_gzipped_file_is_never_in_memory_at_once(tmp_path):
    path = tmp_path / "g.txt.gz"
    path.write_bytes(gzip.compress(b"# a comment\n" * 1_000_000 + b"0 1\n"))
    tracemalloc.start()
    try:
        assert sc.read_graph(path).n_edges == 1
        assert tracemalloc.get_traced_memory()[1] < 8e6  # two thirds of what the file holds
    finally:
        tracemalloc.stop()


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.io.text.BLOCK", 10)
    monkeypatch.setattr("sheafcoarsen.io.text.LONGEST", 100)
    path = tmp_path / "g.txt"
    path.write_bytes(b"0 1\n" + b"0" * 100)
    assert len(list(read_lines(str(path)))) == 2
    path.write_bytes(b"0 1\n" + b"0" * 120)
    with refuses(f"{path}:2: more than 100 bytes without an end of line"):
        list(read_lines(str(path)))


def test_gzipped_files_are_told_by_their_name(tmp_path):
    path = tmp_path / "g.txt.GZ"
    whole = gzip.compress(b"0 1\n" * 100)
    path.write_bytes(whole)
    assert read_bytes(str(path)) == b"0 1\n" * 100
    path.write_bytes(whole[:-9])
    with refuses(f"{path}: the gzip file is truncated"):
        read_bytes(str(path))
    path.write_bytes(b"0 1\n")
    with refuses(f"{path}: not a gzip file, or a damaged one"):
        read_bytes(str(path))
    path.write_bytes(whole[:10] + b"\xff" * 20)
    with refuses(f"{path}: not a gzip file, or a damaged one"):
        read_bytes(str(path))
    other = tmp_path / "g.txt"
    other.write_bytes(whole)
    with refuses(f"{other}:1: not a text file: byte 0x8b is not UTF-8; it is gzipped, so its name"):
        list(read_lines(str(other)))


def test_the_line_of_a_byte_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "g.txt"
    path.write_bytes(b"0 1\n1 2\n\xff\n")
    with pytest.raises(ValueError, match=r"g\.txt:3: not a text file: byte 0xff is not UTF-8$"):
        list(read_lines(str(path)))


def words_of(*lines):
    words = Words("g.txt", "the weight")
    for line, text in lines:
        words.add(line, text.split())
    return words


def test_words_know_their_lines():
    words = words_of((2, "1 2"), (5, ""), (7, "3"))
    assert [words.line(k) for k in range(3)] == [2, 2, 7]
    assert words.integers() == [1, 2, 3]
    assert words.numbers().tolist() == [1.0, 2.0, 3.0]


def test_integers_have_any_size():
    assert words_of((1, "1" + "0" * 30)).integers() == [10**30]


@pytest.mark.parametrize("word", ["1_000", "\u0661", "x", "0x1", ""])
def test_what_is_no_number_is_refused_though_python_reads_it(word):
    words = words_of((2, "1 2"), (4, "3"))
    words.add(6, [word])
    with refuses(f"g.txt:6: the weight must be a whole number, got {word!r}"):
        words.integers()
    with refuses(f"g.txt:6: the weight must be a number, got {word!r}"):
        words.numbers()


@pytest.mark.parametrize("word", ["nan", "inf", "1e999"])
def test_numbers_are_finite(word):
    with refuses(f"g.txt:3: the weight must be finite, got {word!r}"):
        words_of((2, "1"), (3, word)).numbers()
