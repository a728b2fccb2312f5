"""The stubs: mypy --strict accepts the package and a user's file, and the stubs match the extension."""

from __future__ import annotations

import ast
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import kiln
from kiln import _kiln

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[2] / "bindings" / "python"


def mypy(*files: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file="]
    # The packages that the adapters import may have no types or be missing.
    command += ["--ignore-missing-imports", "--cache-dir", os.environ.get("MYPY_CACHE", os.devnull)]
    return subprocess.run([*command, *files], capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(PACKAGE)})


class Types(unittest.TestCase):
    def test_mypy_accepts_user_file_and_package(self) -> None:
        try:
            import mypy as _  # noqa: F401
        except ImportError:
            self.skipTest("mypy is not installed")
        with tempfile.TemporaryDirectory() as folder:
            wrong = pathlib.Path(folder, "wrong.py")
            wrong.write_text("import kiln\nkiln.get('no unit')\n")
            own = [str(file) for file in sorted((PACKAGE / "kiln").glob("*.py"))]
            done = mypy(str(HERE / "sample.py"), *own, str(wrong))
        complaints = done.stdout.splitlines()
        self.assertEqual([line for line in complaints if "wrong.py" not in line], [], done.stderr)
        self.assertEqual(len(complaints), 1, "mypy must reject the file with an error, which proves that types are checked")

    def test_unit_served_by(self) -> None:
        wide = kiln.Unit.cuda("k.cu", "source", entries="k")
        narrow = kiln.Unit.cuda("k.cu", "source", entries="k", served_by=["acme/vision", "acme/toys"])
        self.assertEqual(wide.served_by, [])
        self.assertEqual(narrow.served_by, ["acme/vision", "acme/toys"])
        self.assertEqual(kiln.Unit.opencl("k.cl", "source", served_by="acme/*").served_by, ["acme/*"])
        self.assertEqual(wide.key, narrow.key)
        self.assertNotEqual(wide, narrow)

    def test_stubs_match_extension(self) -> None:
        tree = ast.parse((PACKAGE / "kiln" / "_kiln.pyi").read_text())
        stubs = {
            node.name: {part.name for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))}
            for node in tree.body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        }
        classes = {name: value for name, value in vars(_kiln).items() if isinstance(value, type)}
        self.assertEqual(set(stubs), set(classes))
        for name, value in classes.items():
            there = {part for part in vars(value) if not part.startswith("__")}
            self.assertEqual({part for part in stubs[name] if not part.startswith("__")}, there, name)
        self.assertEqual([name for name in kiln.__all__ if not hasattr(kiln, name)], [])


if __name__ == "__main__":
    unittest.main()
