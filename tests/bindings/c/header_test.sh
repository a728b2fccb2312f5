#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kiln.h compiles on its own: as C11 with strict warnings, as C++17 and as C++20.
#   header_test.sh INCLUDE_DIR
set -euo pipefail
include=$1
strict=(-pedantic -Wall -Wextra -Werror -fsyntax-only -I "$include")
for compiler in gcc clang; do
  "$compiler" -std=c11 "${strict[@]}" -Wstrict-prototypes -x c - <<<'#include <kiln/kiln.h>'
done
for standard in c++17 c++20; do
  g++ -std="$standard" "${strict[@]}" -x c++ - <<<$'#include <kiln/kiln.h>\n#include <kiln/kiln.h>'
done
# With the C++ headers too: their names must not collide.
g++ -std=c++17 "${strict[@]}" -x c++ - <<<$'#include <kiln/kiln.hpp>\n#include <kiln/kiln.h>'
