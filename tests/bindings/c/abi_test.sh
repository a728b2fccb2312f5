#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Changes a copy of kiln.h; tools/check_abi must report the change, and must report nothing without it.
#   abi_test.sh SOURCE_DIR LIBKILN.SO
set -euo pipefail
source_dir=$1
library=$2
check=$source_dir/tools/check_abi
. "$(dirname "$0")/../../support/processes/scratch.sh"

"$check" --library "$library" || fail "the header, the library and bindings/c/abi.txt differ"

# Applies a sed script to the header and checks the messages of the tool: SCRIPT MESSAGE…
plant() {
  local script=$1 said
  shift
  sed -E "$script" "$source_dir/include/kiln/kiln.h" >"$scratch/kiln.h"
  if "$check" --header "$scratch/kiln.h" --library "$library" 2>"$scratch/said"; then fail "check_abi missed '$script'"; fi
  for said in "$@"; do
    grep -qF -- "$said" "$scratch/said" || fail "'$said' is not in: $(cat "$scratch/said")"
  done
}
plant 's/^  KILN_DENIED = 5,/  KILN_DENIED = 13,/
       s/^  size_t shared_bytes;/  uint32_t shared_bytes, flags;/
       s/int64_t timeout_ns, (kiln_kernel)/int timeout_ns, \1/
       s/^(typedef void .*kiln_release_callback).*/\1)(void* user, int why);/
       s/^KILN_C_API size_t kiln_string_size.*//
       s/^KILN_C_API int kiln_c_api_version.*/&\nKILN_C_API int kiln_new(void);/' \
  '-  5 KILN_DENIED' '-  40 8 shared_bytes: size_t' '-function kiln_session_get: ' '-callback kiln_release_callback: ' \
  'kiln_string_size is exported, but not declared' 'kiln_new is declared, but not exported' 'tools/check_abi --update'
plant 's/^  uint32_t min_grid_size;/  uint32_t min_grid_size; int flag;/' 'has padding'

# A change must be announced by a new version.
sed 's/^KILN_C_API int kiln_c_api_version.*/&\nKILN_C_API int kiln_new(void);/' \
  "$source_dir/include/kiln/kiln.h" >"$scratch/kiln.h"
cp "$source_dir/bindings/c/abi.txt" "$scratch/abi.txt"
update=("$check" --update --header "$scratch/kiln.h" --abi "$scratch/abi.txt")
! "${update[@]}" 2>/dev/null || fail "the tool accepted a change without a new version"
sed -i 's/^#define KILN_C_API_VERSION .*/#define KILN_C_API_VERSION 1000/' "$scratch/kiln.h"
"${update[@]}" >/dev/null || fail "the tool rejected a change with a new version"
"$check" --header "$scratch/kiln.h" --abi "$scratch/abi.txt" || fail "the tool reports a change that was announced"
