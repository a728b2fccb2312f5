# SPDX-License-Identifier: Apache-2.0
"""Checks that bench/peers/adapters/nvcc.py counts compiles and hits, with the real nvcc and ccache: nvcc_adapter_test.py SOURCES"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

NOT_HERE = 77
ADAPTER = Path(sys.argv[1], "bench", "peers", "adapters", "nvcc.py")
KERNEL = '#include "scale.h"\nextern "C" __global__ void scale(float* x) { *x *= SCALE; }\n'


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="kiln-test-") as scratch:
        source, header = Path(scratch, "scale.cu"), Path(scratch, "include", "scale.h")
        header.parent.mkdir()
        source.write_text(KERNEL)

        def ask(scale: float) -> tuple[int, str]:
            header.write_text(f"#define SCALE {scale}f\n")
            words = [sys.executable, str(ADAPTER), "ccache", f"{scratch}/cache", str(source), str(header.parent), "sm_90"]
            done = subprocess.run(words, capture_output=True, text=True)
            if done.returncode == NOT_HERE:
                sys.exit(NOT_HERE)
            answer = json.loads(done.stdout)
            assert answer["error"] is None and len(answer["ns"]) == 1 and answer["bytes"] > 0, answer
            return answer["compiles"], answer["sha256"]

        first, again, edited = ask(1.5), ask(1.5), ask(2.5)
        assert first[0] == 1, "the first request must compile"
        assert again == (0, first[1]), "the second request must be a hit"
        assert edited[0] == 1 and edited[1] != first[1], "a changed header must compile"


main()
