#!/usr/bin/env python3
"""Checks analysis/audit/questions.md: each of the 78 questions has one answer, and each rule, report field or source pattern
that an answer names exists. Prints the number of questions per kind of answer."""
import collections
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "analysis/audit/questions.md"
QUESTIONS = 78
KINDS = ("rule", "report", "not answerable")
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
NAME = re.compile(r"`([a-z_0-9]+)`")


def rows() -> list[tuple[int, str, str, str]]:
    return [(int(number), question.strip(), kind.strip(), answer.strip())
            for number, question, kind, answer in ROW.findall(PAGE.read_text(encoding="utf-8"))]


def names_in(pattern: str, folder: str, files: str) -> set[str]:
    texts = (file.read_text(encoding="utf-8") for file in sorted((ROOT / folder).glob(files)))
    return {name for text in texts for name in re.findall(pattern, text)}


class AuditQuestions(unittest.TestCase):
    def test_each_question_has_one_answer(self):
        self.assertEqual([row[0] for row in rows()], list(range(1, QUESTIONS + 1)))
        for number, _, kind, answer in rows():
            self.assertIn(kind, KINDS, f"question {number}")
            self.assertGreater(len(answer), 5, f"question {number}")

    def test_each_answer_names_what_exists(self):
        rules = names_in(r'\bRule \w+\{\s*"(\w+)"', "analysis/audit", "*.cpp")
        fields = names_in(r'\{"(\w+)",', "apps/kiln/analysis", "*json*.cpp")
        self.assertGreater(len(rules), 15)
        self.assertGreater(len(fields), 15)
        for number, _, kind, answer in rows():
            names = set(NAME.findall(answer))
            if kind == "rule":
                self.assertTrue(names & rules, f"question {number} names no rule")
            if kind == "report":
                self.assertTrue(names & fields, f"question {number} names no field of the report")
            self.assertEqual(names - rules - fields, set(), f"question {number}")

    def test_page_states_the_counts(self):
        counts = collections.Counter(kind for _, _, kind, _ in rows())
        text = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS)
        print(f"{QUESTIONS} questions: {text}")
        page = PAGE.read_text(encoding="utf-8")
        for kind in KINDS:
            self.assertTrue(f"| {kind} | {counts[kind]} |" in page, f"the page does not state {counts[kind]} for {kind}")


if __name__ == "__main__":
    unittest.main()
