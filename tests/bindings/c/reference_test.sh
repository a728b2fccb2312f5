#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Doxygen builds the reference of the C and C++ headers without a warning, and warns about an invalid reference.
#   reference_test.sh SOURCE_DIR
set -euo pipefail
command -v doxygen >/dev/null || {
  echo "skipped: there is no doxygen here (tools/setup.sh installs it)"
  exit 77
}
. "$(dirname "$0")/../../support/processes/scratch.sh"
mkdir -p "$scratch/tree/runtime"
cp -r "$1/include" "$scratch/tree/"
cp -r "$1/runtime/include" "$scratch/tree/runtime/"
mkdir -p "$scratch/tree/tools" "$scratch/tree/build"
cp -r "$1/tools/doxygen" "$scratch/tree/tools/"
cd "$scratch/tree"
doxygen tools/doxygen/Doxyfile
for page in kiln_8h classkiln_1_1Session; do
  [ -s "build/reference/html/$page.html" ] || fail "the reference has no page $page"
done
grep -q kiln_session_artifact build/reference/html/kiln_8h.html
echo '/// @ref no_such_thing' >>include/kiln/kiln.h
echo 'void planted(void);' >>include/kiln/kiln.h
! doxygen tools/doxygen/Doxyfile 2>/dev/null || fail "doxygen accepted an invalid reference"
