"""The page follows the reader's theme and the width of the screen."""

import re

from sheafcoarsen.html_report.style import STYLE


def test_every_colour_has_its_dark_one():
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL)
    names = set(re.findall(r"--\w+", light))
    assert names == set(re.findall(r"--\w+", dark))
    assert set(re.findall(r"var\((--\w+)\)", STYLE)) <= names


def test_narrow_screens_and_dark_pictures_have_rules():
    assert "@media (max-width" in STYLE
    assert re.search(r"prefers-color-scheme: dark\) \{\s*figure img \{ filter: invert", STYLE)
    assert STYLE.count("{") == STYLE.count("}")
