# SPDX-License-Identifier: Apache-2.0
"""Starts Chromium for the tests of the page that `kiln report` writes, and reads what it drew."""
import html.parser
import pathlib
import subprocess
import sys
import tempfile


def check(holds, what):
    if not holds:
        sys.exit(f"{pathlib.Path(sys.argv[0]).stem}: {what}")


def run(command, **more):
    done = subprocess.run(command, capture_output=True, timeout=300, **more)
    check(done.returncode == 0, f"{command} returned {done.returncode}: {done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout


class Page(html.parser.HTMLParser):
    """The parts of a document that are compared: its model, its rows of waits, its texts, and the number of marks per color."""

    def __init__(self, text):
        super().__init__()
        self.model, self.rows, self.marks, self.inside = "", [], {}, ""
        self.text, self.codes, self.titles, self.images, self.ready = "", [], [], 0, ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        about = dict(attributes)
        self.inside = "model" if about.get("id") == "model" else tag
        self.images += tag == "img"
        if tag == "html":
            self.ready = about.get("data-ready", "")
        if tag == "tr" and "data-ms" in about:
            self.rows.append((float(about["data-ms"]), int(about["data-run"]), int(about["data-event"])))
        classes = (about.get("class") or "").split()
        if "mark" in classes and "data-event" in about:
            self.marks[classes[1]] = self.marks.get(classes[1], 0) + 1
            self.titles.append(about.get("title", ""))

    def handle_data(self, data):
        if self.inside == "model":
            self.model += data
        elif self.inside not in ("script", "style"):
            self.text += data
        if self.inside == "code":
            self.codes.append(data)

    def handle_endtag(self, tag):
        self.inside = ""


def browse(chromium, page, png, size, *more):
    """Returns the page after its script ran and takes a screenshot, with one start of the browser."""
    with tempfile.TemporaryDirectory() as profile:
        dom = run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}",
                   f"--window-size={size}", f"--screenshot={png}", "--dump-dom", *more, page.as_uri()])
    check(png.exists(), "Chromium wrote no screenshot")
    return Page(dom.decode(errors="replace"))
