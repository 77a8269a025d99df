"""A bar when asked for, silence otherwise."""

import importlib.util

from sheafcoarsen._support import bar


def run(show):
    with bar(3, "local modes", show) as progress:
        for _ in range(3):
            progress.update()


def test_a_bar_is_shown_when_asked_for_and_silent_otherwise(capsys):
    run(False)
    assert capsys.readouterr() == ("", "")
    run(True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "local modes: 100%" in shown.err
    assert "3/3" in shown.err


def test_without_the_widgets_of_notebooks_it_is_a_plain_one(capsys, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    run(True)
    assert "local modes: 100%" in capsys.readouterr().err
