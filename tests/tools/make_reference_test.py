#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/make_reference: what it reads from help texts and declarations, and that the committed tables that need no program
are up to date."""
import importlib.machinery
import importlib.util
import pathlib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
loader = importlib.machinery.SourceFileLoader("make_reference", str(ROOT / "tools/make_reference"))
make_reference = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_reference", loader))
loader.exec_module(make_reference)

COMPILE = """Compile units
Usage: kiln compile [OPTIONS] [FILE...]

Arguments:
  FILE ...                    Sources; - is standard input

Options:
  -h,--help                   Print this help and exit
  --json                      Print JSON
  -o,--output PATH            Output file
  --a-very-long-option-name NAME
                              Text on its own line,
                              and a second one
  --either A|B                One of two

Each file is compiled.

Examples:
  kiln compile k.cu           compiles it
"""
MERGE = "Merge several\nUsage: kiln bundle merge [OPTIONS] BUNDLE(1x)\n\nOptions:\n  -o,--output PATH   Output file\n"
DIFF = "List differences\nUsage: kiln bundle diff [OPTIONS] BUNDLE(2x)\n\nArguments:\n  BUNDLE x 2   Two bundles\n"
BUNDLE = "Build bundles\nUsage: kiln bundle [OPTIONS] COMMAND\n\nCommands:\n  merge   Merge several\n  diff   List differences\n"


class Program:
    def help(self, *words):
        return make_reference.Help({"compile": COMPILE, "bundle": BUNDLE, "bundle merge": MERGE, "bundle diff": DIFF}[" ".join(words)])


class Tables(unittest.TestCase):
    def test_options_have_no_common_ones_and_no_examples(self):
        command = Program().help("compile")
        self.assertEqual(command.usage, "kiln compile [FILE…]")
        self.assertEqual(
            make_reference.options_of(command),
            "| option | meaning |\n| --- | --- |\n| `FILE…` | Sources; - is standard input |\n| `-o, --output PATH` | Output file |\n"
            "| `--a-very-long-option-name NAME` | Text on its own line, and a second one |\n| `--either A\\|B` | One of two |\n",
        )

    def test_group_has_a_row_per_command_and_the_options_of_each(self):
        text = make_reference.group_of(Program(), "bundle", Program().help("bundle"))
        self.assertIn("| `kiln bundle merge BUNDLE…` | Merge several |", text)
        self.assertIn("| `kiln bundle diff BUNDLE BUNDLE` | List differences |", text)
        self.assertIn("**`kiln bundle merge`**", text)
        self.assertNotIn("**`kiln bundle diff`**", text)

    def test_remarks_have_the_text_and_the_examples(self):
        self.assertEqual(Program().help("compile").remarks, "Each file is compiled.\n\n```text\nkiln compile k.cu           compiles it\n```")

    def test_help_without_usage_is_rejected(self):
        with self.assertRaises(make_reference.Mistake):
            make_reference.Help("kiln\n")

    def test_event_without_a_group_is_rejected(self):
        layout = make_reference.tomllib.loads(make_reference.text_of("tools/reference.toml"))
        layout["events"][0]["names"].remove("hit")
        with self.assertRaisesRegex(make_reference.Mistake, "differ in: hit"):
            make_reference.event_tables(layout)

    def test_committed_tables_match_the_declarations(self):
        layout = make_reference.tomllib.loads(make_reference.text_of("tools/reference.toml"))
        files = make_reference.settings_tables() | make_reference.declared_tables(layout)
        self.assertGreater(len(files), 5)
        for name, text in files.items():
            with self.subTest(name):
                self.assertEqual((make_reference.FOLDER / f"{name}.md").read_text(encoding="utf-8"), make_reference.content(text))


if __name__ == "__main__":
    unittest.main()
