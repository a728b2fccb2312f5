#!/usr/bin/env bash
# Each public header compiles alone, as C++17, with the first of the given compilers; all together with each of them.
#   headers_test.sh INCLUDE_DIR COMPILER…
set -euo pipefail
include=$1
shift
check() { "$1" -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ -I "$include" - <<<"$2"; }

for header in "$include"/kiln/*.hpp "$include"/kiln/*/*.hpp; do
  check "$1" "#include <${header#"$include/"}>"
done
for compiler in "$@"; do
  check "$compiler" $'#include <kiln/kiln.hpp>\n#include <kiln/runtime.hpp>'
done
