#!/usr/bin/env bash
# Plants one mistake in a copy of the sources; tools/check_layers must name it, and must have nothing to say without it.
#   check_layers_test.sh SOURCE_DIR none | FILE TEXT EXPECTED
set -euo pipefail
source_dir=$1
. "$(dirname "$0")/../support/scratch.sh"
cp -r "$source_dir/src" "$source_dir/include" "$source_dir/apps" "$source_dir/bindings" "$scratch/"

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
  fail "it did not notice '$3' in $2"
fi
grep -qF -- "$4" <<<"$said" || fail "it said: $said"
