"""A tqdm bar when asked for, silence otherwise."""

import importlib.util

import tqdm


def bar(total: int, description: str, show: bool):
    """Return a progress bar over ``total`` steps, a notebook's own kind in a notebook; a silent one unless ``show``."""
    if not show:
        return tqdm.tqdm(total=total, disable=True)
    if (
        importlib.util.find_spec("ipywidgets") is None
    ):  # a notebook's own kind needs them, and warns without
        return tqdm.tqdm(total=total, desc=description)
    from tqdm import auto  # only now: it looks for a notebook, which takes a while

    return auto.tqdm(total=total, desc=description)
