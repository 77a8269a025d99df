"""A tqdm bar when asked for, silence otherwise."""

import importlib.util

import tqdm


def bar(total: int, description: str, show: bool) -> tqdm.tqdm:
    """Return a progress bar over ``total`` steps; a silent one unless ``show``.

    In a notebook it is of the notebook's own kind.
    """
    if not show:
        return tqdm.tqdm(total=total, disable=True)
    # a notebook's own kind needs them, and warns without
    if importlib.util.find_spec("ipywidgets") is None:
        return tqdm.tqdm(total=total, desc=description)
    from tqdm import auto  # only now: it looks for a notebook, which takes a while

    return auto.tqdm(total=total, desc=description)
