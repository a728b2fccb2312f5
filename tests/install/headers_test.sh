#!/usr/bin/env bash
# Compiles each public header alone as C++17 with the first of the given compilers, and all together with each of them.
#   headers_test.sh INCLUDE_DIR RUNTIME_INCLUDE_DIR COMPILER…
set -euo pipefail
include=$1
runtime=$2
shift 2
check() { "$1" -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ -I "$include" -I "$runtime" - <<<"$2"; }

for folder in "$include" "$runtime"; do
  while read -r header; do check "$1" "#include <$header>"; done < <(cd "$folder" && find kiln -name '*.hpp' | sort)
done
for compiler in "$@"; do
  check "$compiler" $'#include <kiln/kiln.hpp>\n#include <kiln/runtime.hpp>'
done
