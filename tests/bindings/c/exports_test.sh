#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libkiln.so exports kiln_* for C, kiln:: for C++, and no symbol of the libraries that are linked into it.
#   exports_test.sh LIBKILN.SO
set -euo pipefail
exported=$(nm -DC --defined-only "$1" | cut -d' ' -f3-)
foreign=$(grep -Ev '^((vtable for |typeinfo (name )?for |guard variable for )?kiln::|kiln_[a-z0-9_]+$)' <<<"$exported" || true)
[ -z "$foreign" ] || {
  printf 'libkiln.so exports symbols that are not kiln'\''s:\n%s\n' "$foreign" >&2
  exit 1
}
grep -q '^kiln_session_open$' <<<"$exported"
grep -q '^kiln::Session::open' <<<"$exported"
