#!/usr/bin/env bash
# Each public header compiles alone, as C++17, with each of the given compilers.
#   headers_test.sh INCLUDE_DIR COMPILER…
set -euo pipefail
include=$1
shift
for compiler in "$@"; do
  for header in "$include"/kiln/*.hpp "$include"/kiln/*/*.hpp; do
    "$compiler" -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ -I "$include" - \
      <<<"#include <${header#"$include/"}>"
  done
done
