"""`python -m kiln doctor`, and the console script `kiln`: the command-line tool that the package carries."""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def program() -> str:
    """Where the tool lies."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "kiln")


def main() -> NoReturn:
    """Becomes the tool, so that its exit code, signals and terminal are its own."""
    path = program()
    if not os.access(path, os.X_OK):
        sys.exit(f"kiln: this package was built without the command-line tool ({path} is not there)")
    os.execv(path, ["kiln", *sys.argv[1:]])


if __name__ == "__main__":
    main()
