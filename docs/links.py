"""Check that links inside the built site lead to files and anchors that exist.

``python docs/links.py docs/_build``, as ``make docs`` does; addresses elsewhere are not asked.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page and the anchors in it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        """Note what a tag links to, and its name."""
        for key, value in attrs:
            if key in ("href", "src") and value:
                self.links.append(value)
            elif key in ("id", "name") and value:
                self.anchors.add(value)


def broken(folder):
    """Return (page, link) for every link without a target."""
    paths = [path.resolve() for path in folder.rglob("*.html") if "_static" not in path.parts]
    pages = {path: Page(path) for path in paths}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = target.exists() and (
                not anchor or target not in pages or anchor in pages[target].anchors
            )
            if not known:
                found.append((path.name, link))
    return found


if __name__ == "__main__":
    missing = broken(Path(sys.argv[1]))
    for name, link in missing:
        print(f"{name}: {link} leads nowhere")
    sys.exit(bool(missing))
