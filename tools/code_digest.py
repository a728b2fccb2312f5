# SPDX-License-Identifier: Apache-2.0
"""The digest that names a tree of code. Results and the progress of long runs count only for the code that they are of."""
import hashlib
import pathlib
import subprocess

# What the library, the programs and the packages are built from. Documents, tests, tools and results are not part of it.
CODE = ["CMakeLists.txt", "cmake", "src", "include", "runtime", "analysis", "apps", "bindings", "examples"]


def code_digest(root: pathlib.Path, paths: list[str]) -> str:
    """Returns a digest of the tracked files below `paths`, committed or not."""
    def git(*command: str) -> bytes:
        return subprocess.run(["git", *command, "--", *paths], cwd=root, check=True, capture_output=True).stdout
    return hashlib.sha256(git("ls-files", "-s") + git("diff", "HEAD")).hexdigest()[:12]
