#!/usr/bin/env python3
"""A planted mistake of every kind is found by tools/check_docs, and told with its page and line; a page without one passes."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FENCE = "```"


def block(language, *lines, notes=()):
    return "\n".join([*(f"<!-- {note} -->" for note in notes), FENCE + language, *lines, FENCE, ""])


# Page → (its text, the line of the mistake, words of the message). The heading is line 1, a block begins at line 3.
BROKEN = {
    "console": (block("console", "$ true", "$ cat no-such-file   # comment"), 5, "'cat no-such-file' fails: exit code 1"),
    "exit": (block("console", "$ false", notes=["exits: 3"]), 5, "exit code 1"),
    "output": (block("console", "$ echo 3 cats", "4 cats in …", notes=["output: checked"]), 6, "shows what was not printed"),
    "cpp": (block("cpp", "int fine() { return 1; }", "int broken() { return nothing; }"), 5, "does not compile: ‘nothing’"),
    "brace": (block("cpp", "int open() {", "  return 1;"), 5, "this does not compile"),
    "program": (block("cpp", "int main() {", "  return 7;", "}"), 4, "this program ends with 7"),
    "c": (block("c", "int f(void) { return g(); }"), 4, "does not compile"),
    "python": (block("python", "x = 1", "assert x == 2"), 5, "this Python fails"),
    "json": (block("json", '{"a": 1,}'), 4, "neither one JSON value"),
    "toml": (block("toml", "a = "), 4, "this is no TOML"),
    "yaml": (block("yaml", "a: [1"), 4, "this is no YAML"),
    "sh": (block("sh", "if true; then"), 4, "bash does not understand"),
    "language": (block("cobol", "STOP RUN."), 3, "nobody knows how to run 'cobol'"),
    "reason": (block("console", "$ reboot", notes=["not run"]), 3, "says why"),
    "unknown_note": ("<!-- prelud: session -->\n", 3, "there is no note 'prelud'"),
    "unended": (FENCE + "console\n$ true\n", 3, "never ends"),
    "link": ("[there](nowhere.md)\n", 3, "there is no docs/nowhere.md"),
    "anchor": ("[there](good.md#no-such-heading)\n", 3, "docs/good.md has no heading for #no-such-heading"),
    "address": ("[there](htps://example.org)\n", 3, "is no address"),
}
GOOD = "\n".join([
    "[here](#a-page)\n",
    block("console", "$ export A=2 B=$(cat given.txt)", '$ echo "$A results, $B"', "3 results, a text", notes=["output: checked"])
    .replace("3 results, a text", "7 results, …"),
    block("cpp", "int block() { return 1; }"),
    block("cpp", "int main() { return 0; }"),
    block("python", "assert open('given.txt').read() == 'a text\\n'"),
    block("json", '{"a": "…"}'),
    block("text", "this is { no code"),
    block("console", "$ reboot", notes=["not run: it would end the check"]),
])


class CheckDocs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            docs = pathlib.Path(folder) / "docs"
            docs.mkdir()
            for name, (text, _, _) in BROKEN.items():
                (docs / f"{name}.md").write_text(f"# A page\n\n{text}", encoding="utf-8")
            given = block("text", "a text", notes=["file: given.txt"])
            (docs / "good.md").write_text(f"# A page\n\n{given}\n{GOOD}", encoding="utf-8")
            pages = "".join(f"  - {path.name}\n" for path in docs.glob("*.md") if path.name != "exit.md")
            (pathlib.Path(folder) / "mkdocs.yml").write_text("nav:\n" + pages, encoding="utf-8")
            build = str(ROOT / (sys.argv[1] if len(sys.argv) > 1 else "build/release"))
            ran = subprocess.run([ROOT / "tools/check_docs", "--root", folder, "--build", build, "--jobs", "2"],
                                 stdout=subprocess.PIPE, text=True, check=False)
            cls.code, cls.printed = ran.returncode, ran.stdout

    def test_each_planted_mistake_is_told_with_its_page_and_line(self):
        for name, (_, line, words) in BROKEN.items():
            with self.subTest(name):
                told = [each for each in self.printed.splitlines() if each.startswith(f"docs/{name}.md:")]
                self.assertTrue(any(each.startswith(f"docs/{name}.md:{line}: ") and words in each for each in told),
                                f"wanted line {line}, '{words}'; told: {told}\n{self.printed}")
        self.assertEqual(self.code, 1)

    def test_a_page_that_no_contents_list_is_told(self):
        self.assertIn("docs/exit.md:1: this page is not in the table of contents", self.printed)

    def test_a_page_without_a_mistake_is_not_told(self):
        self.assertNotIn("docs/good.md:1:", self.printed)
        self.assertFalse([each for each in self.printed.splitlines() if each.startswith("docs/good.md")], self.printed)

    def test_what_is_not_run_is_listed_with_its_reason(self):
        self.assertIn("it would end the check", self.printed)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
