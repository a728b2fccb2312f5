# SPDX-License-Identifier: Apache-2.0
"""Checks that every link has a target, and that every page of docs/ is in the site's table of contents."""
import pathlib
import posixpath
import re
import urllib.parse

from .pages import BUILT, Mistake

NAV = re.compile(r"^\s*-\s*(?:[^#]*?:\s*)?[\"']?([\w./-]+\.md)[\"']?\s*$")
LOADED = re.compile(r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=[\"'](?:https?:)?//[^>]*|"
                    r"<link\b[^>]*\bhref=[\"'](?:https?:)?//[^>]*|url\([\"']?(?:https?:)?//[^)]*|@import\s+[\"'](?:https?:)?//[^;]*")
# Pages that tools/site_hooks.py adds to the site under other names.
FROM_THE_TREE = {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}


def slugs(headings, of_one):
    """Returns the anchors of a page. A repeated one gets a number, like in the renderer."""
    seen, found = {}, set()
    for heading in headings:
        slug = of_one(heading)
        number = seen.get(slug, 0)
        seen[slug] = number + 1
        found.add(slug if not number else None)
    return found - {None}


def on_a_forge(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def on_the_site(heading):
    ascii_only = heading.encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


def anchor_mistake(page, anchor):
    if anchor not in slugs(page.headings, on_a_forge):
        return f"{page.name} has no heading for #{anchor}"
    if anchor not in slugs(page.headings, on_the_site):
        return f"the anchor #{anchor} of {page.name} is different on the site; simplify that heading"
    return ""


def link_mistake(root, page, target, pages):
    parts = urllib.parse.urlsplit(target)
    if parts.scheme:
        # External links are only checked for syntax; the check never uses the network.
        well = parts.scheme in ("https", "http", "mailto") and (parts.netloc or parts.scheme == "mailto")
        return "" if well else f"{target} is not a valid URL"
    path = urllib.parse.unquote(parts.path)
    where = posixpath.normpath(posixpath.join(posixpath.dirname(page.name), path)) if path else page.name
    if where.startswith(("/", "..")):
        return f"{target} points outside the source tree"
    if where in BUILT:
        return ""
    if not (root / where).exists():
        return f"{target} is a broken link: {where} does not exist"
    if parts.fragment and where in pages:
        return anchor_mistake(pages[where], parts.fragment)
    return ""


def link_mistakes(root, pages):
    for page in pages.values():
        for line, target in page.links:
            if message := link_mistake(root, page, target, pages):
                yield Mistake(page.name, line, message)
        for line, name in page.included:
            if not (root / "docs" / name).is_file():
                yield Mistake(page.name, line, f"the included file docs/{name} does not exist")


def nav_mistakes(root, pages):
    contents = root / "mkdocs.yml"
    if not contents.exists():
        return
    listed = {}
    for number, line in enumerate(contents.read_text(encoding="utf-8").splitlines(), 1):
        if found := NAV.match(line):
            listed[found[1]] = number
    for name in pages:
        if name.startswith("docs/") and name != "docs/index.md" and name.removeprefix("docs/") not in listed:
            yield Mistake(name, 1, "this page is not in the table of contents, mkdocs.yml")
    for name, number in listed.items():
        there = (root / "docs" / name).exists()
        if not there and not (name in FROM_THE_TREE and (root / name).exists()):
            yield Mistake("mkdocs.yml", number, f"page {pathlib.PurePosixPath('docs') / name} does not exist")


def site_mistakes(site):
    """Yields the resources that a page of the built site would load from other servers."""
    built = [path for path in sorted(site.rglob("*")) if path.suffix in (".html", ".css")]
    if not built:
        yield Mistake(str(site), 1, "site not found; run mkdocs build")
    for path in built:
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if found := LOADED.search(line):
                yield Mistake(str(path.relative_to(site)), number, f"this is loaded from another server: {found[0][:120]}")
