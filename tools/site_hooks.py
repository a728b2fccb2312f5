# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs for kiln's site: pages of the source tree's root become pages of the site, and links to files that are
not pages (sources, tests) become plain text, since a site has no sources."""
import pathlib
import posixpath
import re
import shutil

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The names in the site of pages of the root.
PLACES = {"CHANGELOG.md": "CHANGELOG.md", "CONTRIBUTING.md": "CONTRIBUTING.md",
          "SECURITY.md": "SECURITY.md"}
# The output of `doxygen tools/doxygen/Doxyfile`, if it was run, and its place in the site.
HEADERS = ROOT / "build/reference/html"
HEADERS_PLACE = "reference/api"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"^([ \t]*)(`{3,}).*?^\1\2[ \t]*$", re.M | re.S)


def site_target(target, folder):
    """Converts a link of a file in a directory of the tree to a link of the site, relative to docs/. None if the site has no target."""
    path, mark, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", target):
        return target
    where = posixpath.normpath(posixpath.join(folder, path))
    if where == "README.md":  # the site has a start page of its own
        where, mark, anchor = "docs/index.md", "", ""
    if where in PLACES and (ROOT / where).exists():
        place = PLACES[where]
    elif where.startswith("docs/") and (ROOT / where).is_file():
        place = where.removeprefix("docs/")
    else:
        return None
    here = "" if folder == "" else posixpath.relpath(folder, "docs")
    return posixpath.relpath(place, here or ".") + mark + anchor


def with_links(markdown, folder):
    def one(found):
        if posixpath.join(folder, found[3]).startswith(f"docs/{HEADERS_PLACE}/"):  # written after the build: as HTML, it is not checked
            return f'<a href="{found[3]}">{found[2]}</a>'
        target = site_target(found[3], folder)
        return found[0] if target == found[3] else f"{found[1]}[{found[2]}]({target})" if target else found[2]

    parts, at = [], 0
    for block in FENCED.finditer(markdown):
        parts += [LINK.sub(one, markdown[at:block.start()]), block[0]]
        at = block.end()
    return "".join(parts) + LINK.sub(one, markdown[at:])


def on_files(files, config):
    for name, place in PLACES.items():
        if (ROOT / name).exists():
            text = with_links((ROOT / name).read_text(encoding="utf-8"), "")
            files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown, page, **_):
    if page.file.generated_by is None:
        markdown = with_links(markdown, posixpath.join("docs", posixpath.dirname(page.file.src_uri)).rstrip("/"))
    return markdown


def on_post_build(config):
    if HEADERS.exists():
        shutil.copytree(HEADERS, pathlib.Path(config["site_dir"]) / HEADERS_PLACE, dirs_exist_ok=True)
