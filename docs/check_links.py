"""Links of the built site that lead to a file of it: do the file, and the place in it, exist? ``make docs`` asks."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Where a page leads, and which places it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name == "id" and value:
                self.places.add(value)


def main(site: Path) -> int:
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists() or (
                parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places
            ):
                dead.append(f"{path.relative_to(site.resolve())}: {link}")
    print("\n".join(dead) or f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, none dead")
    return int(bool(dead))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
