# SPDX-License-Identifier: Apache-2.0
"""`python -m kiln doctor`, and the console script `kiln`: the command-line tool that the package contains."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def program() -> str:
    """Returns the path of the tool."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "kiln")


def main() -> NoReturn:
    """Replaces this process by the tool, so that the tool's exit code, signals and terminal apply."""
    path = program()
    if not os.access(path, os.X_OK):
        sys.exit(f"kiln: this package was built without the command-line tool ({path} is missing)")
    os.execv(path, ["kiln", *sys.argv[1:]])


if __name__ == "__main__":
    main()
