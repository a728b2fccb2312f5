#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that tools/check_hardening fails and names each mitigation that a program lacks.

    check_hardening_test.py SOURCE_DIR
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE_DIR = pathlib.Path(sys.argv.pop(1))
GOOD = ["-fstack-protector-all", "-O1", "-D_FORTIFY_SOURCE=3", "-pie", "-fPIE", "-Wl,-z,relro,-z,now,-z,noexecstack",
        "-D_GLIBCXX_ASSERTIONS"]
# The mitigation, and the options that remove it.
BAD = {
    "now": ["-Wl,-z,lazy"],
    "pie": ["-no-pie", "-fno-PIE"],
    "nx": ["-Wl,-z,execstack"],
    "relro": ["-Wl,-z,norelro"],
    "stack": ["-fno-stack-protector"],
    "fortify": ["-U_FORTIFY_SOURCE"],
    "assert": ["-U_GLIBCXX_ASSERTIONS"],
    "branch": ["-fcf-protection=none"],
    "no rpath": ["-Wl,-rpath,/tmp"],
}


def program(folder, extra):
    """Builds a program with many functions whose addresses are taken, and with calls that can be fortified."""
    source = pathlib.Path(folder, "main.cpp")
    functions = "".join(f"int f{i}(const char* t) {{ char b[64]; std::snprintf(b, sizeof b, t, {i}); "
                        f"std::memcpy(b, t, n); return b[{i % 64}]; }}\n" for i in range(150))
    source.write_text("#include <cstdio>\n#include <cstring>\n#include <vector>\nextern std::size_t n;\nstd::size_t n = 3;\n" +
                      functions + "int (*const all[])(const char*) = {" + ", ".join(f"f{i}" for i in range(150)) + "};\n"
                      "int main(int c, char** v) { std::vector<int> many(4); return all[c](v[0]) + many[c]; }\n")
    out = pathlib.Path(folder, "program")
    mark = ["-fcf-protection=full"] if subprocess.run(["uname", "-m"], capture_output=True, text=True).stdout.strip() == "x86_64" \
        else ["-mbranch-protection=standard"]
    subprocess.run(["g++", "-w", *GOOD, *mark, *extra, source, "-o", out], check=True)
    return out


def check(*places):
    return subprocess.run([SOURCE_DIR / "tools" / "check_hardening", *places], capture_output=True, text=True)


class CheckHardening(unittest.TestCase):
    def test_accepts_hardened_program(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            result = check(program(folder, []))
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("1 files, 0 missing", result.stdout)

    def test_names_missing_mitigation(self) -> None:
        for name, options in BAD.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                result = check(program(folder, options))
                self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
                heads = result.stdout.splitlines()[0]
                column = result.stdout.splitlines()[1][heads.index(name):]
                self.assertTrue(column.startswith("MISSING"), result.stdout)

    def test_fails_without_files(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.assertNotEqual(check(folder).returncode, 0)
            self.assertNotEqual(check(folder + "/missing").returncode, 0)


if __name__ == "__main__":
    unittest.main()
