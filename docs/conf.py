"""Sphinx configuration: `make docs` builds the site, without network, warnings being errors.

Notebooks come from `docs/notebooks`, where `make notebooks` puts them with their outputs.
"""

import base64
import inspect
import json
import re
import shutil
from html import escape
from pathlib import Path

import latex2mathml.converter
from docutils import nodes

import sheafcoarsen

HERE = Path(__file__).parent
NOTEBOOKS = HERE / "notebooks"

project = "sheafcoarsen"
author = "The sheafcoarsen developers"
copyright = author
release = sheafcoarsen.__version__
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "matplotlib.sphinxext.plot_directive",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
]
exclude_patterns = ["_build", "jupyter_execute", "notebooks/data", "notebooks/README.md"]
templates_path = ["_templates"]
suppress_warnings = ["mystnb.unknown_mime_type"]  # widgets of progress bars

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc sections name the types
numpydoc_show_class_members = False
numpydoc_use_plots = True  # examples that import matplotlib show their picture
plot_include_source = True
plot_html_show_formats = False
plot_html_show_source_link = False
plot_formats = [("png", 120)]
plot_working_directory = str(HERE.parent)

nb_execution_mode = "off"  # `make notebooks` has run them, and fails where one does
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "dollarmath", "substitution"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["copy.js"]
html_title = f"sheafcoarsen {release}"
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc", "download"],
    "header_links_before_dropdown": 8,
    "show_nav_level": 1,
    "navbar_align": "left",
}
html_sidebars = {name: ["pages.html"] for name in ("index", "gallery", "genindex", "search")}


# ---------------------------------------------------------------- formulas


def _visit_math(display):
    """Return a visitor that writes a formula as MathML, which browsers set without scripts."""

    def visit(self, node):
        tag = "div" if display else "span"
        bars = re.sub(r"\\[lr]Vert\b", r"\\|", node.astext())  # of one height
        text = re.sub(r"\\ker\b\s*", r"\\ker\\,", bars)  # names of functions and a space
        formula = latex2mathml.converter.convert(text, display="block" if display else "inline")
        self.body.append(f'<{tag} class="math notranslate">{formula}</{tag}>')
        raise nodes.SkipNode

    return visit, None


def _read_source(app, name, source):
    """Insert the version, and let links to the repository's notebooks lead to their pages."""
    text = source[0].replace("@VERSION@", release)
    source[0] = re.sub(r"\]\(\.\./((?:\.\./)?notebooks/)", r"](\1", text)


def _show_pictures(app, what, name, obj, options, lines):
    """Let examples of pictures draw into figures that the site shows."""
    if name.startswith("sheafcoarsen.plot."):
        text = "\n".join(lines)
        figure, pyplot = "from matplotlib.figure import Figure", "import matplotlib.pyplot as plt"
        text = text.replace(figure, pyplot)
        text = text.replace("Figure()", 'plt.figure(layout="constrained")')
        lines[:] = text.replace("Figure(", 'plt.figure(layout="constrained", ').split("\n")


def _uses() -> dict[str, list[tuple[str, str]]]:
    """Return for each public name the guides and notebooks whose code uses it, with titles."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in [*sorted((HERE / "guides").glob("*.md")), *NOTEBOOKS.glob("*.ipynb")]:
        text = path.read_text(encoding="utf-8")
        code = text
        if path.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
            text = "".join(cells[0]["source"])
        title = text.partition("\n")[0].removeprefix("# ")
        page = f"/{path.relative_to(HERE).with_suffix('').as_posix()}"
        for name in sorted(set(re.findall(r"\bsc\.((?:[a-z]+\.)?\w+)(?=[(.,\s])", code))):
            found.setdefault(f"sheafcoarsen.{name}", []).append((title, page))
    return found


def _show_uses(app, what, name, obj, options, lines):
    """Append the pages whose examples use a function or class."""
    if what in ("function", "class") and name in USES:
        links = (f"* :doc:`{title} <{page}>`" for title, page in USES[name])
        lines += ["", ".. rubric:: Used in", "", *links, ""]


def _copy_notebooks(app, exception):
    """Copy the notebooks into the folder of their pages, from which readers download them."""
    if exception is None and app.builder.format == "html":
        for path in NOTEBOOKS.glob("*.ipynb"):
            shutil.copy(path, Path(app.outdir) / "notebooks")


def setup(app):
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", _visit_math(False), _visit_math(True))
    app.connect("source-read", _read_source)
    app.connect("autodoc-process-docstring", _show_pictures, priority=100)  # before numpydoc
    app.connect("autodoc-process-docstring", _show_uses, priority=900)
    app.connect("build-finished", _copy_notebooks)


html_math_renderer = "mathml"


# ---------------------------------------------------------------- the API


def _functions_of(module) -> list[str]:
    """Return the public functions of a module such as ``sheafcoarsen.plot``."""
    return [name for name in module.__all__ if inspect.isfunction(getattr(module, name))]


def _subjects() -> dict[str, list[str]]:
    """Return the public names by subject, as the package's docstring groups them."""
    found: dict[str, list[str]] = {}
    subject = ""
    for line in (sheafcoarsen.__doc__ or "").splitlines():
        entry = re.match(r"    (\w+)  +\S", line)
        if entry and inspect.ismodule(getattr(sheafcoarsen, entry[1])):
            names = _functions_of(getattr(sheafcoarsen, entry[1]))
            found[subject] += [f"{entry[1]}.{name}" for name in names]
        elif entry:
            found[subject].append(entry[1])
        elif re.fullmatch(r"\w[\w ,]*", line):
            subject = line
            found[subject] = []
    return found


def _write_api() -> None:
    """Write a page of all public names, and one for each subject, which makes the sidebar."""
    head = [".. currentmodule:: sheafcoarsen", ""]
    (HERE / "api").mkdir(exist_ok=True)
    overview = ["API", "===", "", *head]
    pages = []
    for subject, names in _subjects().items():
        page = re.sub(r"\W+", "_", subject.lower())
        pages.append(f"   api/{page}")
        title = [subject, "=" * len(subject), ""]
        table = ["", *(f"   {name}" for name in names), ""]
        text = [*title, *head, ".. autosummary::", "   :toctree: ../generated", *table]
        (HERE / "api" / f"{page}.rst").write_text("\n".join(text), encoding="utf-8")
        overview += [subject, "-" * len(subject), "", ".. autosummary::", *table]
    overview += [".. toctree::", "   :hidden:", "", *pages, ""]
    (HERE / "api.rst").write_text("\n".join(overview), encoding="utf-8")


_write_api()

# Eigenmodes and eigenmodes would be one file where the case of names does not count
_lower = {name.lower() for name in sheafcoarsen.__all__ if name.islower()}
autosummary_filename_map = {
    f"sheafcoarsen.{name}": f"sheafcoarsen.{name}-class"
    for name in sheafcoarsen.__all__
    if not name.islower() and name.lower() in _lower
}


# ---------------------------------------------------------------- notebooks and their pictures


def _title_and_first_lines(notebook: dict) -> tuple[str, str]:
    """Return the title of a notebook and its first two sentences."""
    title, _, rest = "".join(notebook["cells"][0]["source"]).partition("\n")
    paragraph = rest.strip().partition("\n\n")[0].replace("\n", " ")
    sentences = [text for text in re.split(r"(?<=[.?])\s+", paragraph) if text[-1] in ".?"]
    return title.removeprefix("# "), " ".join(sentences[:2])


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
    folder, thumbnails = NOTEBOOKS, HERE / "_static" / "thumbnails"
    thumbnails.mkdir(exist_ok=True)
    index = ["# Notebooks", "", "Each runs in a minute or less, with the extra `notebooks`.", ""]
    gallery = ["# Gallery", "", "Each picture leads to the notebook that makes it.", ""]
    gallery += ["::::{grid} 1 2 3 3", ":gutter: 3", ""]
    toctree = ["```{toctree}", ":hidden:", ""]
    for path in sorted(folder.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        title, words = _title_and_first_lines(notebook)
        index += [f"* [{title}]({path.name}): {words} {{download}}`Download <{path.name}>`", ""]
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
USES = _uses()
