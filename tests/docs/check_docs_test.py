#!/usr/bin/env python3
"""Checks that tools/check_docs finds a planted mistake of every kind with its page and line, and accepts a correct page."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FENCE = "```"


def block(language, *lines, title=""):
    return "\n".join([FENCE + language + (f' title="{title}"' if title else ""), *lines, FENCE, ""])


# Page → (its text, the line of the mistake, part of the message). The heading is line 1, a block begins at line 3.
BROKEN = {
    "console": (block("console", "$ true", "$ cat no-such-file   # comment"), 5, "'cat no-such-file' fails: exit code 1"),
    "exit": (block("console", "$ false"), 4, "exit code 1"),
    "time": (block("console", "$ echo 4 ms of 5 cats", "3.1 s of ms cats"), 5, "output differs from the page"),
    "output": (block("console", "$ echo 3 cats", "4 cats in …"), 5, "output differs from the page"),
    "compiles": (block("console", "$ echo 2 units, compiled 0", "7 units, compiled 1"), 5, "output differs from the page"),
    "cpp": (block("cpp", "int fine() { return 1; }", "int broken() { return nothing; }"), 5, "does not compile: ‘nothing’"),
    "brace": (block("cpp", "int open() {", "  return 1;"), 5, "this does not compile"),
    "program": (block("cpp", "int main() {", "  return 7;", "}"), 4, "this program exited with 7"),
    "c": (block("c", "int f(void) { return g(); }"), 4, "does not compile"),
    "python": (block("python", "x = 1", "assert x == 2"), 5, "this Python code fails"),
    "json": (block("json", '{"a": 1,}'), 4, "invalid JSON"),
    "toml": (block("toml", "a = "), 4, "invalid TOML"),
    "yaml": (block("yaml", "a: [1"), 4, "invalid YAML"),
    "sh": (block("sh", "if true; then"), 4, "invalid shell syntax"),
    "language": (block("cobol", "STOP RUN."), 3, "language 'cobol' cannot be checked"),
    "included": ('--8<-- "_generated/gone.md"\n', 3, "the included file docs/_generated/gone.md does not exist"),
    "long": ("word | " * 100, 1, "this page has 102 words; its budget in tests/docs/words.toml is 81"),
    "unended": (FENCE + "console\n$ true\n", 3, "is not closed"),
    "link": ("[there](nowhere.md)\n", 3, "docs/nowhere.md does not exist"),
    "anchor": ("[there](good.md#no-such-heading)\n", 3, "docs/good.md has no heading for #no-such-heading"),
    "address": ("[there](htps://example.org)\n", 3, "is not a valid URL"),
}
# Page → (its text, its sidecar, the file and line of the mistake, words of the message). `{page}` is docs/NAME.md there,
# `{sidecar}` tests/docs/pages/docs/NAME.toml.
ENTRY = '[[block]]\nstarts = "true"\ncheck = "run"\n'
SIDECARS = {
    "sidecar_without_block": (block("console", "$ true"), ENTRY + '[[block]]\nstarts = "gone"\ncheck = "run"\n', "{sidecar}:5",
                              "no block of {page} starts with 'gone'"),
    "sidecar_without_entry": (block("console", "$ true") + block("json", "{"), ENTRY, "{page}:7", "invalid JSON"),
    "sidecar_of_two": (block("console", "$ true") * 2, ENTRY, "{sidecar}:2", "more than one block (2) of {page} starts with 'true'"),
    "sidecar_twice": (block("console", "$ true"), ENTRY * 2, "{sidecar}:2", "two entries for the block at line 4"),
    "sidecar_kind": (block("cpp", "int lost_its_main() { return 0; }"), '[[block]]\nstarts = "int "\ncheck = "run"\n', "{page}:4",
                     "says 'run' of this block, but it is: compiled"),
    "sidecar_reason": (block("console", "$ reboot"), '[[block]]\nstarts = "reboot"\nskip = ""\n', "{sidecar}:2", "says why"),
    "sidecar_both": (block("console", "$ true"), ENTRY + 'skip = "why"\n', "{sidecar}:2", "either `check`, or `skip`"),
    "sidecar_output": (block("console", "$ true"), ENTRY + 'output = "checked"\n', "{sidecar}:2", "`output` is: example"),
    "sidecar_exits": (block("console", "$ false"), '[[block]]\nstarts = "false"\nexits = 3\n', "{page}:4", "exit code 1"),
    "sidecar_key": (block("console", "$ true"), ENTRY + "exit = 1\n", "{sidecar}:2", "there is no key 'exit'"),
    "sidecar_replace": (block("console", "$ true"), ENTRY + '[replace]\n"https://gone" = "x"\n', "{sidecar}:5", "has 'https://gone'"),
    "sidecar_fails": (block("console", "$ true", "$ false"), ENTRY, "{page}:5", "'false' fails: exit code 1"),
    "sidecar_says": ("It takes 4 ms.\n", '[[figure]]\ntext = "5 ms"\nfile = "mkdocs.yml"\n', "{sidecar}:2", "{page} does not say '5 ms'"),
    "sidecar_figure": ("It takes 4 ms.\n", '[[figure]]\ntext = "4 ms"\nfile = "docs/measured.txt"\nline = "slow"\n', "{sidecar}:4",
                       "docs/measured.txt does not say '4 ms', in a line with 'slow'"),
}
GOOD_SIDECAR = """
setup = ["venv"]
[replace]
"a.example" = "127.0.0.1"
[[block]]
starts = "touch"
check = "text"
[[block]]
starts = "echo a.example"
exits = 3
check = "run"
[[block]]
starts = "echo first\\n$ echo second"
output = "example"
[[block]]
starts = "reboot"
skip = "it would end this check, too"
[[block]]
starts = "int main"
check = "run"
[[figure]]
text = "4%"
file = "docs/measured.txt"
line = "fast"
"""
GOOD_PAGE = "It takes 4% longer.\n\n" + "\n".join([
    block("text", "touch", title="given.txt"),
    block("console", "$ echo first", "$ echo second", "not what is printed"),
    block("console", "$ echo first", "first"),
    block("console", "$ echo a.example took 1.3 s; cat given.txt", "127.0.0.1 took 121 ms", "touch", "$ (exit 3)"),
    block("console", "$ reboot"),
    block("cpp", "int main() { return 0; }"),
])
GOOD = "\n".join([
    "[here](#a-page)\n",
    block("console", "$ export A=2 B=$(cat given.txt)", '$ echo "$A results, $B"', "7 results, …"),
    '=== "C++"\n',
    "    " + block("cpp", "int in_a_tab() { return 1; }").replace("\n", "\n    "),
    block("cpp", "int block() { return 1; }"),
    block("cpp", "int main() { return 0; }"),
    block("python", "assert open('given.txt').read() == 'a text\\n'"),
    block("json", '{"a": "…"}'),
    block("text", "this is { no code"),
])


class CheckDocs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            docs = pathlib.Path(folder) / "docs"
            docs.mkdir()
            for name, (text, _, _) in BROKEN.items():
                (docs / f"{name}.md").write_text(f"# A page\n\n{text}", encoding="utf-8")
            given = block("text", "a text", title="given.txt")
            (docs / "good.md").write_text(f"# A page\n\n{given}\n{GOOD}", encoding="utf-8")
            (docs / "measured.txt").write_text("slow 5 ms\nfast 4\u00a0ms, 4\u00a0%\n", encoding="utf-8")
            sidecars = pathlib.Path(folder) / "tests/docs/pages/docs"
            sidecars.mkdir(parents=True)
            for name, (text, sidecar, _, _) in {**SIDECARS, "with_sidecar": (GOOD_PAGE, GOOD_SIDECAR, "", "")}.items():
                (docs / f"{name}.md").write_text(f"# A page\n\n{text}", encoding="utf-8")
                (sidecars / f"{name}.toml").write_text(sidecar, encoding="utf-8")
            (sidecars / "no_page.toml").write_text("", encoding="utf-8")
            pages = "".join(f"  - {path.name}\n" for path in docs.glob("*.md") if path.name != "exit.md")
            budgets = "".join(f'"{path.name}" = {81 if path.name == "long.md" else 500}\n' for path in docs.glob("*.md"))
            (pathlib.Path(folder) / "tests/docs/words.toml").write_text(f"total = 90\n[pages]\n{budgets}", encoding="utf-8")
            (pathlib.Path(folder) / "mkdocs.yml").write_text("nav:\n" + pages, encoding="utf-8")
            build = str(ROOT / (sys.argv[1] if len(sys.argv) > 1 else "build/release"))
            ran = subprocess.run([ROOT / "tools/check_docs", "--root", folder, "--build", build, "--jobs", "2"],
                                 stdout=subprocess.PIPE, text=True, check=False)
            cls.code, cls.printed = ran.returncode, ran.stdout

    def test_reports_each_planted_mistake_with_page_and_line(self):
        for name, (_, line, words) in BROKEN.items():
            with self.subTest(name):
                mistakes_of_page = [each for each in self.printed.splitlines() if each.startswith(f"docs/{name}.md:")]
                self.assertTrue(any(each.startswith(f"docs/{name}.md:{line}: ") and words in each for each in mistakes_of_page),
                                f"expected line {line}, '{words}'; reported: {mistakes_of_page}\n{self.printed}")
        self.assertEqual(self.code, 1)

    def test_reports_each_sidecar_mistake_with_file_and_line(self):
        for name, (_, _, at, words) in SIDECARS.items():
            with self.subTest(name):
                names = {"page": f"docs/{name}.md", "sidecar": f"tests/docs/pages/docs/{name}.toml"}
                at, words = at.format(**names), words.format(**names)
                self.assertTrue(any(each.startswith(f"{at}: ") and words in each for each in self.printed.splitlines()),
                                f"wanted {at}, '{words}'\n{self.printed}")

    def test_reports_sidecar_without_page(self):
        self.assertIn("tests/docs/pages/docs/no_page.toml:1: there is no page docs/no_page.md", self.printed)

    def test_runs_correct_page_as_its_sidecar_states(self):
        mistakes_of_page = [each for each in self.printed.splitlines() if each.startswith(("docs/with_sidecar", "tests/docs/pages/docs/with_sidecar"))]
        self.assertEqual(mistakes_of_page, [], self.printed)
        self.assertIn("it would end this check, too", self.printed)
        self.assertIn("'a.example' is run as '127.0.0.1'", self.printed)

    def test_reports_page_missing_from_table_of_contents(self):
        self.assertIn("docs/exit.md:1: this page is not in the table of contents", self.printed)

    def test_reports_nothing_for_correct_page(self):
        self.assertNotIn("docs/good.md:1:", self.printed)
        self.assertFalse([each for each in self.printed.splitlines() if each.startswith("docs/good.md")], self.printed)

    def test_reports_too_many_words_in_all(self):
        self.assertRegex(self.printed, r"tests/docs/words.toml:1: the pages have \d+ words in all; the limit is 90")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
