"""Tables as text and as HTML: escaping, number formats, abbreviation of long rows."""

import numpy as np
import pytest

from sheafcoarsen._support import tables


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (True, "yes"),
        (np.False_, "no"),
        (1234567, "1,234,567"),
        (np.int64(1234), "1,234"),
        (0.000123456, "0.0001235"),
        (np.float32(0.5), "0.5"),
        (1 + 2j, "1+2j"),
        ("<b>&", "&lt;b&gt;&amp;"),
        (None, "None"),
        ("\x1b[31mred\r\n\x7f\x9b", r"\x1b[31mred\r\n\x7f\x9b"),
        ("a\u202eb\u2028\ud800", r"a\u202eb\u2028\ud800"),
        ("a\u200fb\u061c", r"a\u200fb\u061c"),
        ("नमस्ते \u200d 👩\u200d🔬", "नमस्ते \u200d 👩\u200d🔬"),
    ],
    ids=str,
)
def test_text_of_table_cells(cell, text):
    assert tables.text(cell) == text


def test_html_tables_have_a_head_or_row_headers():
    assert tables.table([(1, "<")], head=("a", "b"), caption="c & d") == (
        "<table><caption>c &amp; d</caption><thead><tr><th>a</th><th>b</th></tr></thead>"
        "<tbody><tr><td>1</td><td>&lt;</td></tr></tbody></table>"
    )
    plain = "<table><tbody><tr><th>size</th><td>1,000</td></tr></tbody></table>"
    assert tables.table([("size", 1000)]) == plain


@pytest.mark.parametrize(
    ("values", "text"), [([3, 1, 2], "1 .. 3"), ([2, 2], "2"), ([], "none")], ids=str
)
def test_span_of_numbers(values, text):
    assert tables.span(np.array(values)) == text


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a", 1, ("b", 2)], "a, 1, ('b', 2)"),
        ("abcdefgh", "a, b, c, d, e, f, g, h"),
        ("abcdefghi", "a, b, c, d, e, f, g, h, … (9 in all)"),
        (["x" * 40], "x" * 40),
        (["x" * 41], "x" * 39 + "…"),
        (["a\x07", ("b\x07",)], r"a\x07, ('b\x07',)"),
        (["\x07" * 11], r"\x07" * 9 + r"\x0…"),
    ],
    ids=repr,
)
def test_long_names_are_escaped_and_abbreviated_and_counted(names, text):
    assert tables.names(names) == text
