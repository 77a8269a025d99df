"""Scripts that use only ``sc.`` names run unchanged: what the last version offered is still there.

tests/data/signatures.txt holds its public names and parameters, as `tests.support.signatures`
writes them. Each must be there with the same parameters, order and defaults; new ones may follow
that can be left out. What went on purpose is listed here, with its reason.
"""

from pathlib import Path

import pytest

import sheafcoarsen as sc
from tests.support.signatures import parameters_of

RECORD = (Path(__file__).parents[1] / "data" / "signatures.txt").read_text("utf-8").splitlines()

GONE_PARAMETERS = {
    # they changed what is returned, and the residual is rounding
    "harmonic_extension": {"*return_residual=False"},
    "nearest_section": {"*return_residual=False"},
    # what the command line alone needed
    "report": {"times=None"},
    # measured where levels are made, not given
    "Hierarchy": {"seconds=None"},
}
GONE_NAMES = {"LocalModes.half_edges"}  # what kernels read, and nobody else
NEW_DEFAULTS = {
    # spectral clustering took minutes where others take a second; it stays an option
    "HiSP": {"method": "'auto'"},
    # of pose graphs it also tries the joint sheaf of poses and landmarks
    "synchronize": {"method": "'auto'"},
}


def found(name):
    """Return the object of that name; fields of a class without a default stand for themselves."""
    item = sc
    for part in name.split("."):
        item = getattr(item, "__dataclass_fields__", {}).get(part) or getattr(item, part)
    return item


def name_of(parameter):
    return parameter.lstrip("/*").partition("=")[0]


def is_positional(parameter):
    return not parameter.startswith("*")


def test_the_record_is_whole():
    names = {line.partition(" | ")[0].removesuffix("()") for line in RECORD}
    assert len(names) == len(RECORD) > 200
    assert {name.partition(".")[0] for name in names} <= set(sc.__all__)


@pytest.mark.parametrize("line", RECORD, ids=lambda line: line.partition(" | ")[0])
def test_it_is_still_there(line):
    head, *old = line.split(" | ")
    name = head.removesuffix("()")
    if name in GONE_NAMES:
        with pytest.raises(AttributeError):
            found(name)
        return
    item = found(name)
    if head == name:  # no callable
        return
    gone = GONE_PARAMETERS.get(name, set())
    assert gone <= set(old)
    old = [
        parameter.partition("=")[0] + "=" + NEW_DEFAULTS[name][name_of(parameter)]
        if name_of(parameter) in NEW_DEFAULTS.get(name, {})
        else parameter
        for parameter in old
        if parameter not in gone
    ]
    new = parameters_of(item)
    assert not {name_of(parameter) for parameter in gone} & set(map(name_of, new))
    places = [parameter for parameter in old if is_positional(parameter)]
    assert new[: len(places)] == places
    named = {name_of(parameter): parameter for parameter in new}
    for parameter in old[len(places) :]:
        assert named[name_of(parameter)].lstrip("*") == parameter.lstrip("*")
    known = set(map(name_of, old))
    for parameter in new:
        assert name_of(parameter) in known or "=" in parameter or parameter.startswith("**")
