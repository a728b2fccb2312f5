# SPDX-License-Identifier: Apache-2.0
"""kiln as a Python program uses it: one session, and the code of a unit from its source."""

import time

STARTED = time.monotonic_ns()

import sysconfig  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Optional  # noqa: E402

from adapter import Question, ask, not_here  # noqa: E402

try:
    import kiln
except ImportError as missing:
    not_here(f"the Python package of kiln is not installed: {missing}")


# An installed kiln uses the NVRTC of the package next to it, as cuda.core does. This one is in a build directory.
PACKAGED = Path(sysconfig.get_paths()["purelib"], "nvidia", "cu13", "lib", "libnvrtc.so.13")


class Kiln:
    def __init__(self) -> None:
        self._session: Optional[kiln.Session] = None

    @property
    def compiles(self) -> Optional[int]:
        return None if self._session is None else self._session.status().compiled

    def get(self, asked: Question) -> bytes:
        if self._session is None:
            settings: dict[str, str | int] = {"cache.dir": asked.cache}
            if PACKAGED.exists():
                settings["nvrtc"] = str(PACKAGED)
            if asked.limit is not None:
                settings["cache.max_size"] = asked.limit
            self._session = kiln.Session(settings)
        unit = kiln.Unit.cuda(asked.name, asked.source, include_roots=[asked.include])
        return self._session.artifact(unit, asked.arch).bytes


ask(Kiln(), kiln.__version__, STARTED)
