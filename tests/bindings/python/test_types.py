# SPDX-License-Identifier: Apache-2.0
"""The stubs: mypy --strict accepts the package and a user's file, and the stubs match the extension."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import inspect
import os
import pydoc
import pathlib
import subprocess
import sys
import tempfile
import unittest

import kiln
from kiln import _kiln

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[2] / "bindings" / "python"


def mypy(config: pathlib.Path, *files: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file", str(config)]
    # The packages that the adapters import may have no types or be missing.
    command += ["--ignore-missing-imports", "--cache-dir", os.environ.get("MYPY_CACHE", os.devnull)]
    return subprocess.run([*command, *files], capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(PACKAGE)})


def public_classes() -> dict[str, type]:
    return {name: value for name, value in vars(_kiln).items() if isinstance(value, type)}


class Types(unittest.TestCase):
    def test_mypy_accepts_user_file_and_package(self) -> None:
        try:
            import mypy as _  # noqa: F401
        except ImportError:
            self.skipTest("mypy is not installed")
        with tempfile.TemporaryDirectory() as folder:
            wrong = pathlib.Path(folder, "wrong.py")
            wrong.write_text("import kiln\nkiln.get('no unit')\n")
            # JAX does not export what its adapter uses; mypy says so only where JAX is installed.
            config = pathlib.Path(folder, "mypy.ini")
            config.write_text("[mypy]\n[mypy-jax.*]\nfollow_imports = skip\n")
            own = [str(file) for file in sorted((PACKAGE / "kiln").glob("*.py"))]
            done = mypy(config, str(HERE / "sample.py"), *own, str(wrong))
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
        classes = public_classes()
        self.assertEqual(set(stubs), set(classes))
        for name, value in classes.items():
            there = {part for part in vars(value) if not part.startswith("__")}
            self.assertEqual({part for part in stubs[name] if not part.startswith("__")}, there, name)
        self.assertEqual([name for name in kiln.__all__ if not hasattr(kiln, name)], [])


    def test_stubs_have_the_docstrings_of_the_extension(self) -> None:
        loader = importlib.machinery.SourceFileLoader("update_stubs", str(HERE.parents[2] / "tools" / "update_stubs"))
        spec = importlib.util.spec_from_loader(loader.name, loader)
        assert spec is not None
        tool = importlib.util.module_from_spec(spec)
        loader.exec_module(tool)
        stubs = (PACKAGE / "kiln" / "_kiln.pyi").read_text()
        self.assertEqual(tool.with_docstrings(stubs, _kiln), stubs, "run tools/update_stubs")
        for name, cls in public_classes().items():
            self.assertTrue(tool.doc_of(cls), name)
            for member, value in vars(cls).items():
                if not member.startswith("_"):
                    self.assertTrue(tool.doc_of(value), f"{name}.{member} has no docstring")

    def test_signatures_are_those_of_the_stubs(self) -> None:
        for name, cls in public_classes().items():
            for member, value in vars(cls).items():
                function = getattr(value, "__func__", value)
                if hasattr(function, "__nb_signature__") and not member.startswith("_"):
                    shown = inspect.signature(getattr(cls, member))
                    (declared, _, defaults), *_ = function.__nb_signature__
                    arguments = ast.parse(declared.replace("\\", "_") + ": ...").body[0].args  # type: ignore[attr-defined]
                    names = [one.arg for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]
                    own = [one.name for one in shown.parameters.values() if one.kind != one.VAR_POSITIONAL]
                    self.assertEqual(own, names, f"{name}.{member}")
                    given = [one.default for one in shown.parameters.values() if one.default is not one.empty]
                    self.assertEqual(given, list(defaults or []), f"{name}.{member}")
        self.assertEqual(
            str(inspect.signature(kiln.get)),
            "(unit: Unit, entry: str = '', timeout: float | None = None, *, stream: _StreamLike = None) -> Kernel",
        )
        self.assertEqual(list(inspect.signature(kiln.Session).parameters)[:2], ["settings", "on_event"])
        shown = pydoc.plain(pydoc.render_doc(kiln.Session))
        self.assertIn("artifact(self, unit: Unit, target: Target | str, timeout: float | None = None) -> Artifact", shown)
        self.assertRegex(shown, r"async artifact_async\(self.*, unit: .*, target: .*timeout: .* = None\) -> ")

    def test_every_class_has_a_repr(self) -> None:
        lacking = [name for name, cls in public_classes().items() if "__repr__" not in vars(cls)]
        self.assertEqual(lacking, [])
        unit = kiln.Unit.cuda("k.cu", "source", entries=["a", "b"])
        self.assertEqual(repr(unit), "<kiln.Unit cuda 'k.cu': a, b>")
        self.assertEqual(repr(kiln.WarmupPlan("p").stage(unit)), "<kiln.WarmupPlan 'p' of 1 units>")
        self.assertEqual(repr(kiln.Session().handle(unit, "a")), "<kiln.KernelHandle a of 'k.cu'>")
        self.assertEqual(repr(kiln.LocalMemory(8)), "kiln.LocalMemory(8)")
        self.assertEqual(repr(kiln.operation("demo")), "<kiln.operation 'demo'>")
        self.assertEqual(repr(kiln.Session().external_cache("triton")), "<kiln.ExternalCache of 'triton'>")


if __name__ == "__main__":
    unittest.main()
