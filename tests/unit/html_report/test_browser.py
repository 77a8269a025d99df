"""Pages as a real browser shows them."""

import re
import shutil
import subprocess

import numpy as np
import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)


def screenshot(page_path, folder, *options):
    """Return the pixels of a page as a browser shows it, (height, width, 3) in 0 .. 1."""
    from matplotlib.image import imread

    picture = folder / "page.png"
    picture.unlink(missing_ok=True)
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--window-size=1000,3600", f"--user-data-dir={folder / 'profile'}"]
    command += [f"--screenshot={picture}", *options, page_path.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return imread(picture)[:, :, :3]


@pytest.mark.skipif(BROWSER is None, reason="no chromium here")
def test_a_browser_renders_the_page_in_light_and_dark_mode(page, tmp_path):
    light = screenshot(page[1], tmp_path)
    dark = screenshot(page[1], tmp_path, "--blink-settings=preferredColorScheme=0")
    margin_light, margin_dark = light[:, :10].mean(), dark[:, :10].mean()
    assert margin_light > 0.95
    assert margin_dark < 0.15
    # pictures have colours in both, and no white card shines out of the dark page
    bare = tmp_path / "bare.html"
    bare.write_text(re.sub("<img[^>]*>", "", page[1].read_text(encoding="utf-8")), encoding="utf-8")
    without = (np.ptp(screenshot(bare, tmp_path), axis=2) > 0.3).mean()
    for shown in (light, dark):
        assert (np.ptp(shown, axis=2) > 0.3).mean() > without + 0.002
    assert (dark.min(axis=2) > 0.9).mean() < 0.05
    assert (light.min(axis=2) > 0.9).mean() > 0.7
    # text stands out from the page in both
    head = slice(20, 400)
    assert light[head].min() < 0.35
    assert dark[head].max() > 0.8
