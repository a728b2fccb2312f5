#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that a variant that does not state its robustness, precision and determinism fails to compile for that reason.
#   undeclared_variant_test.sh COMPILER INCLUDE_DIR RUNTIME_INCLUDE_DIR SOURCE
set -euo pipefail
compile=("$1" -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$2" -I "$3" "$4")

"${compile[@]}" -DKILN_DECLARED
for omission in NOTHING BACKEND_ALONE NO_PRECISION NO_DETERMINISM; do
  if said=$("${compile[@]}" "-DKILN_$omission" 2>&1); then
    echo "a variant compiles with $omission" >&2
    exit 1
  fi
  if ! grep -q "no matching" <<<"$said"; then
    printf '%s: the compiler names no constructor that does not match, but says:\n%s\n' "$omission" "$said" >&2
    exit 1
  fi
done
