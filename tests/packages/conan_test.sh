#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Conan recipe: creates the package from the build without a network, and compiles and runs a program that uses it.
#   conan_test.sh SOURCE_DIR BUILD_DIR CONAN
set -euo pipefail
source_dir=$1
build_dir=$2
conan=$3
. "$(dirname "$0")/../support/processes/scratch.sh"

[ -x "$conan" ] || {
  echo "conan_test did not run: $conan is missing (tools/setup.sh installs it)"
  exit 77
}
unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER
export CONAN_HOME=$scratch/conan HOME=$scratch XDG_CACHE_HOME=$scratch/cache
"$conan" profile detect >"$scratch/said.txt" 2>&1 || fail "$(cat "$scratch/said.txt")"
# The test program is not built in the source tree.
echo "tools.cmake.cmake_layout:test_folder = $scratch/test" >"$CONAN_HOME/global.conf"
KILN_PREBUILT=$build_dir "$conan" create "$source_dir/packaging/conan" --no-remote -s build_type=Release >"$scratch/said.txt" 2>&1 ||
  fail "$(tail -n 60 "$scratch/said.txt")"
"$conan" list 'kiln/*:*' --format=json >"$scratch/list.json" 2>/dev/null
grep -q '"packages"' "$scratch/list.json" || fail "no package was created: $(cat "$scratch/list.json")"
grep -q 'scale for sm_80, a cubin: yes' "$scratch/said.txt" || fail "the program did not run: $(tail -n 60 "$scratch/said.txt")"
# No remote was asked and no other package is needed.
! grep -qiE 'https?://[^ ]*conan' "$scratch/said.txt" || fail "a remote was used: $(grep -iE 'https?://' "$scratch/said.txt")"
[ ! -e "$source_dir/tests/packages/uses_kiln/CMakeUserPresets.json" ] || fail "the recipe writes into the source tree"
grep "scale for sm_80" "$scratch/said.txt"
