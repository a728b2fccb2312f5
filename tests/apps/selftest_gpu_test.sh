#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs `kiln selftest` on a real device. This project is developed without one, so this test has not run yet.
#   selftest_gpu_test.sh KILN
set -euo pipefail
. "$(dirname "$0")/../support/processes/scratch.sh"
[ -e /dev/nvidiactl ] || {
  echo "skipped: there is no NVIDIA device on this machine"
  exit 77
}
"$1" selftest -o "$scratch/report" || fail "a check failed: $(cat "$scratch/report/report.json")"
grep -q 'Device code was executed, on a GPU' "$scratch/report/report.json" || fail "no device code was executed on a GPU"
