"""Sphinx configuration: `make docs` builds the site, without network, warnings being errors.

Notebooks come from `docs/notebooks`, where `make notebooks` puts them with their outputs.
"""

import base64
import inspect
import json
import re
from html import escape
from pathlib import Path

import latex2mathml.converter
from docutils import nodes

import sheafcoarsen

HERE = Path(__file__).parent

project = "sheafcoarsen"
author = "The sheafcoarsen developers"
copyright = author
release = sheafcoarsen.__version__
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "matplotlib.sphinxext.plot_directive",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
]
exclude_patterns = ["_build", "jupyter_execute", "notebooks/data"]
templates_path = ["_templates"]
suppress_warnings = ["mystnb.unknown_mime_type"]  # widgets of progress bars

autosummary_generate = True
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_use_plots = True  # examples that import matplotlib show their picture
plot_include_source = True
plot_html_show_formats = False
plot_html_show_source_link = False
plot_formats = [("png", 120)]

nb_execution_mode = "off"  # `make notebooks` has run them, and fails where one does
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "dollarmath", "substitution"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"sheafcoarsen {release}"
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 7,
    "show_nav_level": 1,
    "navbar_align": "left",
}
html_sidebars = {name: ["pages.html"] for name in ("index", "gallery", "genindex", "search")}


# ---------------------------------------------------------------- formulas


def _visit_math(display):
    """Return a visitor that writes a formula as MathML, which browsers set without scripts."""

    def visit(self, node):
        tag = "div" if display else "span"
        formula = latex2mathml.converter.convert(
            node.astext(), display="block" if display else "inline"
        )
        self.body.append(f'<{tag} class="math notranslate">{formula}</{tag}>')
        raise nodes.SkipNode

    return visit, None


def _read_source(app, name, source):
    """Put the version into the pages that ask for it."""
    source[0] = source[0].replace("@VERSION@", release)


def _show_pictures(app, what, name, obj, options, lines):
    """Let examples of pictures draw into figures that the site shows."""
    if name.startswith("sheafcoarsen.plot."):
        text = "\n".join(lines)
        figure, pyplot = "from matplotlib.figure import Figure", "import matplotlib.pyplot as plt"
        text = text.replace(figure, pyplot)
        text = text.replace("Figure()", 'plt.figure(layout="constrained")')
        lines[:] = text.replace("Figure(", 'plt.figure(layout="constrained", ').split("\n")


def setup(app):
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", _visit_math(False), _visit_math(True))
    app.connect("source-read", _read_source)
    app.connect("autodoc-process-docstring", _show_pictures, priority=100)  # before numpydoc


html_math_renderer = "mathml"


# ---------------------------------------------------------------- the API


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


(HERE / "api.rst").write_text(_api_page(), encoding="utf-8")

# Eigenmodes and eigenmodes would be one file where the case of names does not count
_lower = {name.lower() for name in sheafcoarsen.__all__ if name.islower()}
autosummary_filename_map = {
    f"sheafcoarsen.{name}": f"sheafcoarsen.{name}-class"
    for name in sheafcoarsen.__all__
    if not name.islower() and name.lower() in _lower
}


# ---------------------------------------------------------------- notebooks and their pictures


def _title_and_first_lines(notebook: dict) -> tuple[str, str]:
    """Return the title of a notebook and the first paragraph below it."""
    title, _, rest = "".join(notebook["cells"][0]["source"]).partition("\n")
    paragraph = rest.strip().partition("\n\n")[0].replace("\n", " ")
    return title.removeprefix("# "), paragraph


def _picture(notebook: dict) -> bytes | None:
    """Return the picture of the cell tagged "thumbnail", or else the last picture."""
    found = None
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            png = output.get("data", {}).get("image/png")
            if png:
                found = base64.b64decode(png)
                if "thumbnail" in cell["metadata"].get("tags", ()):
                    return found
    return found


def _notebook_pages() -> None:
    """Write the list of notebooks, and a gallery of their pictures."""
    folder, thumbnails = HERE / "notebooks", HERE / "_static" / "thumbnails"
    thumbnails.mkdir(exist_ok=True)
    index = ["# Notebooks", "", "Each runs in a minute or less, with the library alone.", ""]
    gallery = ["# Gallery", "", "Each picture leads to the notebook that makes it.", ""]
    gallery += ["::::{grid} 1 2 3 3", ":gutter: 3", ""]
    toctree = ["```{toctree}", ":hidden:", ""]
    for path in sorted(folder.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        title, words = _title_and_first_lines(notebook)
        index += [f"* [{title}]({path.name}): {words}", ""]
        toctree.append(path.stem)
        picture = _picture(notebook)
        if picture:
            (thumbnails / f"{path.stem}.png").write_bytes(picture)
            gallery += [
                f":::{{grid-item-card}} {escape(title)}",
                f":img-top: _static/thumbnails/{path.stem}.png",
                f":link: notebooks/{path.stem}",
                ":link-type: doc",
                ":::",
                "",
            ]
    (folder / "index.md").write_text("\n".join([*index, *toctree, "```", ""]), encoding="utf-8")
    (HERE / "gallery.md").write_text("\n".join([*gallery, "::::", ""]), encoding="utf-8")


_notebook_pages()
