# SPDX-License-Identifier: Apache-2.0
"""tools/check_spdx finds sources without the license comment, and adds it where it belongs."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_spdx"
COMMENT = "SPDX-License-Identifier: Apache-2.0"
FILES = {
    "src/a.cpp": "// What it is.\n#include <x>\n",
    "src/CMakeLists.txt": "kiln_module(a)\n",
    "tools/run": "#!/usr/bin/env bash\n# What it does.\n",
    "tools/x.py": '"""What it is."""\n',
    "examples/k.cu": "__global__ void k() {}\n",
    "fuzz/corpus/a/one.cpp": "data\n",
    "notes.md": "# Notes\n",
    "empty.hpp": "",
}


class CheckSpdx(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        subprocess.run(["git", "add", "-A"], cwd=self.root, check=True)

    def run_check(self, *arguments):
        return subprocess.run([sys.executable, CHECK, *arguments, self.root], capture_output=True, text=True, check=False)

    def test_names_files_without_license_and_adds_it_once(self):
        first = self.run_check()
        self.assertEqual(first.returncode, 1)
        named = {line.split(":")[0] for line in first.stdout.splitlines()}
        self.assertEqual(named, {"src/a.cpp", "src/CMakeLists.txt", "tools/run", "tools/x.py", "empty.hpp"})
        self.assertEqual(self.run_check("--fix").stdout, "added the license to 5 files\n")
        self.assertEqual(self.run_check().returncode, 0)
        self.assertEqual(self.run_check("--fix").stdout, "added the license to 0 files\n")
        self.assertEqual((self.root / "src/a.cpp").read_text(), f"// {COMMENT}\n" + FILES["src/a.cpp"])
        self.assertEqual((self.root / "tools/run").read_text(), f"#!/usr/bin/env bash\n# {COMMENT}\n# What it does.\n")
        self.assertEqual((self.root / "examples/k.cu").read_text(), FILES["examples/k.cu"])

    def test_rejects_another_license(self):
        self.run_check("--fix")
        path = self.root / "src/a.cpp"
        path.write_text(path.read_text().replace("Apache-2.0", "MIT"))
        self.assertIn("src/a.cpp", self.run_check().stdout)


if __name__ == "__main__":
    unittest.main()
