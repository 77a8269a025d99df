"""Optional packages: silence where they are there, what to install where not."""

import sys

import pytest

from sheafcoarsen._support import check_matplotlib


def test_a_package_that_is_there_is_no_matter():
    pytest.importorskip("matplotlib")
    check_matplotlib()


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch):
    class Missing:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.split(".")[0] == "matplotlib":
                raise ModuleNotFoundError(f"No module named {name!r}", name="matplotlib")

    for module in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    with pytest.raises(ImportError, match=r'pip install "sheafcoarsen\[plot\]"'):
        check_matplotlib()


def test_another_error_inside_the_package_is_not_hidden(monkeypatch):
    class Broken:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "matplotlib":
                raise ModuleNotFoundError("No module named 'kiwisolver'", name="kiwisolver")

    for module in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(ModuleNotFoundError, match="kiwisolver"):
        check_matplotlib()
