"""Docstrings: a table of contents; parameters, result and an example of every public name."""

import inspect
import pydoc
import re
from functools import cached_property

import sheafcoarsen as sc
from tests.support.signatures import item_of, public_names

SECTIONS = re.compile(r"^(\w+)\n-{3,}$", flags=re.MULTILINE)


def test_the_package_docstring_lists_all_public_names():
    text = sc.__doc__
    entries = re.findall(r"^    (\w+)  +\S", text, flags=re.MULTILINE)
    assert sorted(entries) == sorted(sc.__all__)
    for name in sc.__all__:
        assert len(re.findall(rf"\b{name}\b", text.partition("``help(")[0])) == 1, name
    assert max(map(len, text.splitlines())) <= 120
    shown = pydoc.plain(pydoc.render_doc(sc))
    first = "sheafcoarsen - " + text.partition("\n")[0]
    places = [shown.index(part) for part in (first, "CellularSheaf ", "PACKAGE CONTENTS")]
    assert places == sorted(places)


def described():
    """Yield the name and the object of every public function, class, method and property."""
    for name in public_names():
        item = item_of(name)
        item = getattr(item, "__func__", item)  # of class methods
        if inspect.isfunction(item) or inspect.isclass(item) or isinstance(item, PROPERTIES):
            yield name, item


PROPERTIES = (property, cached_property)
ITEMS = dict(described())


def test_public_items_are_collected():
    some = "CellularSheaf.connection CellularSheaf.from_flat coarsen gallery.cycle plot.partition "
    assert set((some + "ranks.kernel Coarsening.n_crossing_edges").split()) <= set(ITEMS)


def wanted(name, item) -> set[str]:
    """Return the sections that a docstring must have."""
    if isinstance(item, PROPERTIES) or name.endswith("Warning"):
        return set()
    if inspect.isclass(item):
        return set() if name.startswith("ranks.") else {"Examples"}
    if name.startswith("ranks.") and name.endswith(".ranks"):
        return set()  # described in `Rule.ranks`
    sections = {"Examples"}
    signature = inspect.signature(item)
    if set(signature.parameters) - {"self", "cls"}:
        sections.add("Parameters")
    if signature.return_annotation not in (None, "None"):
        sections.add("Returns")
    source = inspect.getsource(item)
    if re.search(r"^ +raise \w", source, flags=re.MULTILINE):
        sections.add("Raises")
    if re.search(r"\bwarn(ings\.warn|_if_tied)\(", source):
        sections.add("Warns")
    return sections


def faults_of(name, item):
    """Return what the docstring of a public item lacks."""
    text = inspect.cleandoc(item.__doc__ or "")
    faults = [] if text.partition("\n")[0].endswith(".") else ["the first line is no sentence"]
    found = SECTIONS.findall(text)
    faults += [f"no section {section}" for section in sorted(wanted(name, item) - set(found))]
    order = ["Parameters", "Attributes", "Returns", "Raises", "Warns", "Notes", "Examples"]
    if found != [section for section in order if section in found]:
        faults.append(f"sections {found}")
    if "Examples" in found and ">>> " not in text:
        faults.append("no example")
    # rules are excluded, because the functions that construct them describe their fields
    if inspect.isclass(item) and not name.startswith("ranks."):
        described = text[text.find("Parameters\n---") :] + text[text.find("Attributes\n---") :]
        names, pattern = getattr(item, "__dataclass_fields__", {}), r"\b{}\b"
    elif inspect.isfunction(item) and "Parameters" in found:
        described = text.partition("Parameters\n---")[2]
        names = set(inspect.signature(item).parameters) - {"self", "cls"}
        pattern = r"^\*?\*?(\w+, )*{}\b"
    else:
        return faults
    return faults + [
        f"`{parameter}` is not described"
        for parameter in names
        if not re.search(pattern.format(parameter), described, flags=re.MULTILINE)
    ]


def test_docstrings_have_all_sections_in_order():
    faults = {name: faults_of(name, item) for name, item in ITEMS.items()}
    assert {name: found for name, found in faults.items() if found} == {}


def test_help_shows_the_names_of_types_as_written():
    """Evaluated annotations would be shown as Union[...] of all members of an alias."""
    evaluated = {
        f"{name}: {parameter}"
        for name, item in ITEMS.items()
        if inspect.isfunction(item)
        for parameter, kind in inspect.get_annotations(item).items()
        if not isinstance(kind, str | type | None)
    }
    assert evaluated == set()
