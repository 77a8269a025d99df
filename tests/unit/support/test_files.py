"""Files that are replaced whole or not at all."""

import zipfile

import pytest

from sheafcoarsen._support import output_path, replacing


def test_the_new_file_takes_the_place_of_the_old_when_all_has_gone_well(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with replacing(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_otherwise_the_old_one_stays_and_nothing_is_left_behind(tmp_path, error):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")

    def broken():
        with replacing(path) as stream:
            stream.write(b"half of the new")
            raise error

    with pytest.raises(error):
        broken()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_stays_one_though_an_archive_complains(tmp_path):
    def interrupted_archive():
        with replacing(tmp_path / "a.zip") as stream, zipfile.ZipFile(stream, "w") as archive:
            archive.open("member", "w").write(b"unfinished")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_archive()
    assert list(tmp_path.iterdir()) == []


def test_what_the_caller_is_busy_with_is_no_interrupt_of_ours(tmp_path):
    def while_handling_one():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            with replacing(tmp_path / "b"):
                int("own error")

    with pytest.raises(ValueError, match="own error"):
        while_handling_one()
    assert list(tmp_path.iterdir()) == []


def test_places_that_no_file_can_have_are_refused(tmp_path):
    assert output_path(str(tmp_path / "a")) == tmp_path / "a"
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing"):
        output_path(tmp_path / "missing" / "a")
    with pytest.raises(IsADirectoryError, match="is a folder, not a file"):
        output_path(tmp_path)
    with pytest.raises(TypeError, match="`path` must be a path, got int"):
        output_path(3)
