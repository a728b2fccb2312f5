#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program that passes invalid values to the interface succeeds, and calls all of its functions.
#   nonsense_test.sh SOURCE_DIR PROGRAM
set -euo pipefail
missing=$(sed -nE 's/^function (kiln_[a-z0-9_]+):.*/\1/p' "$1/bindings/c/abi.txt" | while read -r function; do
  grep -q "\\b$function(" "$1/tests/bindings/c/nonsense.c" || echo "$function"
done)
[ -z "$missing" ] || {
  printf 'nonsense.c does not call:\n%s\n' "$missing" >&2
  exit 1
}
exec "$2"
