#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plants one mistake in a copy of the sources. tools/check_layers must report it, and must report nothing without it.
#   check_layers_test.sh SOURCE_DIR none | FILE TEXT EXPECTED
set -euo pipefail
source_dir=$1
. "$(dirname "$0")/../support/processes/scratch.sh"
for folder in src runtime analysis include apps bindings; do cp -r "$source_dir/$folder" "$scratch/"; done

if [ "$2" = none ]; then
  "$source_dir/tools/check_layers" "$scratch"
  exit
fi
if [[ $2 == *CMakeLists.txt ]]; then
  printf '%s\n' "$3" >"$scratch/$2"
else
  printf '%s\n' "$3" >>"$scratch/$2"
fi
if said=$("$source_dir/tools/check_layers" "$scratch" 2>&1); then
  fail "check_layers did not report '$3' in $2"
fi
grep -qF -- "$4" <<<"$said" || fail "unexpected output: $said"
