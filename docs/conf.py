"""Sphinx configuration: `make docs` builds the site, without network, warnings being errors."""

import inspect
import re
from pathlib import Path

import sheafcoarsen

project = "sheafcoarsen"
author = "The sheafcoarsen developers"
copyright = author
release = sheafcoarsen.__version__
version = release

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "myst_parser"]
exclude_patterns = ["_build"]
autosummary_generate = True
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"**": []}  # the pages have no sections of their own to list
html_title = f"sheafcoarsen {release}"
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}


def _functions_of(module) -> list[str]:
    """Return the public functions of a module such as ``sheafcoarsen.plot``."""
    return [name for name in module.__all__ if inspect.isfunction(getattr(module, name))]


def _api_page() -> str:
    """Return the page of all public names, grouped as the package's docstring groups them."""
    lines = ["API", "===", "", ".. currentmodule:: sheafcoarsen", ""]
    for line in (sheafcoarsen.__doc__ or "").splitlines():
        entry = re.match(r"    (\w+)  +\S", line)
        if entry and inspect.ismodule(getattr(sheafcoarsen, entry[1])):
            names = _functions_of(getattr(sheafcoarsen, entry[1]))
            lines += [f"   {entry[1]}.{name}" for name in names]
        elif entry:
            lines.append(f"   {entry[1]}")
        elif re.fullmatch(r"\w[\w ,]*", line):
            lines += [
                "",
                line,
                "-" * len(line),
                "",
                ".. autosummary::",
                "   :toctree: generated",
                "",
            ]
    return "\n".join([*lines, ""])


(Path(__file__).parent / "api.rst").write_text(_api_page(), encoding="utf-8")
