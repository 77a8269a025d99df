"""Pages as a real browser shows them."""

import re
import shutil
import subprocess

import numpy as np
import pytest

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="no chromium here: the page is not looked at in a browser"
)


def browse(page_path, folder, *options):
    """Open a page in a browser, and return what it writes."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu"]
    command += [f"--user-data-dir={folder / 'profile'}", *options, page_path.as_uri()]
    return subprocess.run(command, check=True, capture_output=True, timeout=120).stdout.decode()


def screenshot(page_path, folder, *options):
    """Return the pixels of a page as a browser shows it, (height, width, 3) in 0 .. 1."""
    from matplotlib.image import imread

    picture = folder / "page.png"
    picture.unlink(missing_ok=True)
    size = ("--hide-scrollbars", "--window-size=1000,3600")
    browse(page_path, folder, f"--screenshot={picture}", *size, *options)
    return imread(picture)[:, :, :3]


@needs_browser
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


@needs_browser
def test_a_browser_shows_hostile_labels_as_text(page, tmp_path):
    dom = browse(page[1], tmp_path, "--dump-dom")
    assert "&lt;script&gt;alert(1)" in dom
    assert "<script" not in dom
    assert "onerror=alert(2)>" not in dom
