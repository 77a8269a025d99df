"""Atomic replacement of files."""

import fcntl
import os
import stat
import subprocess
import sys

import pytest

from sheafcoarsen._support import files


def test_interrupt_after_creation_leaves_no_file(tmp_path, monkeypatch):
    opened = files._temporary_file

    def interrupted(name, target):
        opened(name, target).close()
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_temporary_file", interrupted)
    with pytest.raises(KeyboardInterrupt), files.replacing(tmp_path / "a.bin"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o400])
def test_new_file_replaces_the_old_one_at_the_end_and_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(mode)
    with files.replacing(path) as stream:
        # nobody else may read the temporary file
        assert stat.S_IMODE(os.fstat(stream.fileno()).st_mode) == mode
        stream.write(b"new")
        stream.flush()
        assert path.read_bytes() == b"old"
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)
    assert list(tmp_path.iterdir()) == [path]


def test_new_file_has_the_default_mode_and_a_name_of_any_length(tmp_path):
    (tmp_path / "a").touch()
    new = tmp_path / ("b" * 255)
    with files.replacing(new) as stream:
        stream.write(b"new")
    assert (new.read_bytes(), new.stat().st_mode) == (b"new", (tmp_path / "a").stat().st_mode)


@pytest.mark.parametrize("there", [True, False])
def test_symbolic_links_are_followed(tmp_path, there):
    (tmp_path / "data").mkdir()
    target = tmp_path / "data" / "a"
    if there:
        target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to(target)
    with files.replacing(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert list((tmp_path / "data").iterdir()) == [target]


def test_targets_that_are_not_regular_files_raise_and_remain(tmp_path):
    pipe, loop = tmp_path / "pipe", tmp_path / "loop"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    for path in (pipe, loop, "/dev/null"):
        message = rf"{path} is not a regular file"
        with pytest.raises(OSError, match=message), files.replacing(path) as stream:
            stream.write(b"new")
    assert pipe.is_fifo()
    assert loop.is_symlink()
    assert sorted(tmp_path.iterdir()) == [loop, pipe]


WRITER = """
import sys
from sheafcoarsen._support import files
with files.replacing(sys.argv[1]) as stream:
    stream.write(b"half of the new")
    stream.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


def test_only_temporary_files_of_dead_processes_are_removed(tmp_path):
    def writer(name):
        command = [sys.executable, "-c", WRITER, str(tmp_path / name)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"writing\n"
        return process

    with writer("killed") as killed, writer("living") as living:
        killed.kill()
        killed.wait()
        assert len(list(tmp_path.iterdir())) == 2
        with files.replacing(tmp_path / "other") as stream:
            assert len(list(tmp_path.iterdir())) == 2
            stream.write(b"new")
        living.communicate()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["living", "other"]
    assert (tmp_path / "living").read_bytes() == b"half of the new"


def test_temporary_file_removed_before_locking_is_created_again(tmp_path, monkeypatch):
    flock, removed = fcntl.flock, []

    def late(stream, operation):
        if operation == fcntl.LOCK_EX and not removed:
            removed.append(stream.name)
            os.unlink(stream.name)
        return flock(stream, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with files.replacing(tmp_path / "a") as stream:
        stream.write(b"new")
    assert removed
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"new"
