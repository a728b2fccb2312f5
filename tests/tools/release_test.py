# SPDX-License-Identifier: Apache-2.0
"""tools/release refuses a tree that is not clean, reports each failed step, and finds a wrong SBOM and source distribution."""
import hashlib
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
from release_steps import Failure, Step, check_sbom, compare_sdist, run_steps, table, write_sums  # noqa: E402


class Refusals(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        (self.root / "tools").mkdir(parents=True)
        for name in ("release", "release_steps.py"):
            shutil.copy(TOOLS / name, self.root / "tools")
        (self.root / ".gitignore").write_text("__pycache__/\n")
        for command in (["init", "-q"], ["add", "-A"],
                        ["-c", "user.name=t", "-c", "user.email=t@t.invalid", "commit", "-q", "-m", "a tree"]):
            subprocess.run(["git", *command], cwd=self.root, check=True)
        self.out = self.root.parent / "out"

    def refused(self):
        ran = subprocess.run([sys.executable, self.root / "tools/release", self.out], capture_output=True, text=True, check=False)
        self.assertEqual(ran.returncode, 2, ran.stderr)
        return ran.stderr

    def test_refuses_changed_and_untracked_files_and_writes_nothing(self):
        (self.root / "new.txt").write_text("new")
        self.assertIn("the tree is not clean: 1 files differ from HEAD, such as new.txt; commit", self.refused())
        (self.root / "new.txt").unlink()
        (self.root / ".gitignore").write_text("__pycache__/\n*.o\n")
        self.assertIn("such as .gitignore", self.refused())
        self.assertFalse(self.out.exists())

    def test_refuses_a_directory_with_files(self):
        self.out.mkdir()
        (self.out / "old.whl").write_text("old")
        self.assertIn("is not empty", self.refused())
        self.assertEqual([path.name for path in self.out.iterdir()], ["old.whl"])


class Steps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def files(self, *names):
        paths = [self.folder / name for name in names]
        for path in paths:
            path.write_text(path.name)
        return paths

    def test_reports_every_failure_and_goes_on(self):
        verified = []

        def verify(path):
            verified.append(path.name)
            if path.name == "b":
                raise Failure("b is\nwrong")
            return "installed"

        def broken():
            raise OSError("no compiler")

        rows = run_steps([Step("first", lambda: self.files("a", "b"), verify), Step("second", broken, verify),
                          Step("third", list, verify), Step("fourth", lambda: self.files("c", "d"), verify, group=True),
                          Step("fifth", lambda: [self.folder / "missing"], verify)])
        self.assertEqual([(row.name, row.result, row.how) for row in rows], [
            ("a", "passed", "installed"), ("b", "FAILED", "b is wrong"), ("second", "NOT BUILT", "no compiler"),
            ("third", "NOT BUILT", "no file was written"), ("c", "passed", "installed"), ("d", "passed", "installed"),
            ("fifth", "NOT BUILT", "missing was not written")])
        self.assertEqual(verified, ["a", "b", "c"])
        self.assertEqual(rows[0].digest, hashlib.sha256(b"a").hexdigest())

        write_sums(self.folder, rows)
        subprocess.run(["sha256sum", "-c", "--quiet", "--strict", "SHA256SUMS"], cwd=self.folder, check=True)
        self.assertEqual(len((self.folder / "SHA256SUMS").read_text().splitlines()), 4)

        lines = table(rows).splitlines()
        self.assertEqual(len(lines), 8)
        self.assertTrue(lines[0].startswith("artifact  "))
        for column in ("sha256", "result", "verified by"):
            start = lines[0].index(column)
            self.assertTrue(all(line[start - 1] == " " and line[start] != " " for line in lines), column)
        self.assertFalse(any(line != line.rstrip() for line in lines))

    def test_a_failed_group_fails_each_of_its_files(self):
        def verify(path):
            raise Failure("dpkg failed")

        rows = run_steps([Step("packages", lambda: self.files("a", "b"), verify, group=True)])
        self.assertEqual([row.result for row in rows], ["FAILED", "FAILED"])


class Contents(unittest.TestCase):
    PACKAGE = {"name": "zstd", "versionInfo": "1.5.4+dfsg2-5", "packageFileName": "libzstd.a",
               "checksums": [{"algorithm": "SHA256", "checksumValue": "ab"}],
               "externalRefs": [{"referenceLocator": "pkg:deb/debian/libzstd-dev@1.5.4%2Bdfsg2-5"}]}
    RIGHT = ({"zstd": "1.5.4"}, {"libzstd-dev": "1.5.4+dfsg2-5"}, {"libzstd.a": "ab"})

    def check(self, versions, packages, archives, **changes):
        return check_sbom({"packages": [{"name": "kiln", "versionInfo": "0.1.0"}, self.PACKAGE | changes]}, versions, packages, archives)

    def test_compares_each_component_of_the_sbom(self):
        versions, packages, archives = self.RIGHT
        self.assertEqual(self.check(*self.RIGHT), 1)
        for wrong, words in (((versions | {"zstd": "1.5.5"}, packages, archives), "contains zstd 1.5.5,"),
                             ((versions | {"zstd": "1.5"}, packages, archives), "contains zstd 1.5,"),
                             ((versions | {"xxHash": "0.8"}, packages, archives), "the SBOM says nothing"),
                             ((versions, {"libzstd-dev": "1.5.4+dfsg2-6"}, archives), "this system has 1.5.4+dfsg2-6"),
                             ((versions, packages, {"libzstd.a": "cd"}), "another digest of libzstd.a"),
                             ((versions, packages, archives | {"libz.a": "ef"}), "the build links")):
            with self.assertRaisesRegex(Failure, re.escape(words)):
                self.check(*wrong)
        with self.assertRaisesRegex(Failure, "zstd has no version"):
            self.check({}, packages, archives, versionInfo="")

    def test_compares_the_source_distribution_with_the_archive(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "a.cpp").write_text("int a;")

            def sdist(**files):
                with tarfile.open(folder / "x.tar.gz", "w:gz") as tar:
                    for member, text in {"PKG-INFO": "generated", **files}.items():
                        entry = tarfile.TarInfo(f"x-1/{member}")
                        entry.size = len(text)
                        tar.addfile(entry, io.BytesIO(text.encode()))
                return folder / "x.tar.gz"

            self.assertEqual(compare_sdist(sdist(**{"a.cpp": "int a;"}), folder), 1)
            for files in ({"a.cpp": "int b;"}, {"b.cpp": "int a;"}):
                with self.assertRaisesRegex(Failure, "differs from the source archive's"):
                    compare_sdist(sdist(**files), folder)


if __name__ == "__main__":
    unittest.main()
