#!/usr/bin/env bash
# An operation without a variant does not compile, and says why; its twin with one does.
#   no_variant_test.sh COMPILER INCLUDE_DIR SOURCE
set -euo pipefail
compile=("$1" -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I "$2" "$3")
sentence="an operation needs a variant that carries it out"

"${compile[@]}" -DKILN_WITH_A_VARIANT
if said=$("${compile[@]}" 2>&1); then
  echo "an operation without a variant compiles" >&2
  exit 1
fi
if ! grep -q "$sentence" <<<"$said"; then
  printf 'the compiler does not say "%s", but:\n%s\n' "$sentence" "$said" >&2
  exit 1
fi
