#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that an operation without a variant fails to compile with a clear message, and compiles with a variant.
#   no_variant_test.sh COMPILER INCLUDE_DIR RUNTIME_INCLUDE_DIR SOURCE
set -euo pipefail
compile=("$1" -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$2" -I "$3" "$4")
sentence="an operation needs at least one implementation"

"${compile[@]}" -DKILN_WITH_A_VARIANT
if said=$("${compile[@]}" 2>&1); then
  echo "an operation without a variant compiles" >&2
  exit 1
fi
if ! grep -q "$sentence" <<<"$said"; then
  printf 'the compiler does not say "%s", but:\n%s\n' "$sentence" "$said" >&2
  exit 1
fi
