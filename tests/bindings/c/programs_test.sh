#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The program of docs/how-to/use-from-c.md, compiled as C11 without a warning, compiles its kernels the first time and never again. Then
# tests/bindings/c/program.c uses everything else with the same cache.
#   programs_test.sh SOURCE_DIR LIBKILN.SO PROGRAM
set -euo pipefail
source_dir=$1
library=$2
. "$(dirname "$0")/../../support/processes/scratch.sh"
ls /etc/OpenCL/vendors/*.icd >/dev/null 2>&1 || {
  echo "skipped: there is no OpenCL driver here (no file in /etc/OpenCL/vendors)"
  exit 77
}

sed -n '/^```c$/,/^```$/p' "$source_dir/docs/how-to/use-from-c.md" | grep -v '^```' >"$scratch/example.c"
folder=$(dirname "$library")
gcc -std=c11 -pedantic -Wall -Wextra -Werror -I "$source_dir/include" "$scratch/example.c" -o "$scratch/example" \
  -L "$folder" -lkiln "-Wl,-rpath,$folder"
for wanted in 'compiled: 2, found: 0' 'compiled: 0, found: 2'; do
  said=$(KILN_CACHE_DIR=$scratch/cache "$scratch/example")
  [ "$said" = "1024 results are right; $wanted" ] || fail "instead of '$wanted' the program of docs/how-to/use-from-c.md said: $said"
done
"$3" "$scratch/cache" "$scratch/no/such/folder/trace.json" 1
