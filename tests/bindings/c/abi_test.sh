#!/usr/bin/env bash
# Plants a change in a copy of kiln.h; tools/check_abi must name it, and must have nothing to say without it.
#   abi_test.sh SOURCE_DIR LIBKILN.SO
set -euo pipefail
source_dir=$1
library=$2
check=$source_dir/tools/check_abi
. "$(dirname "$0")/../../support/scratch.sh"

"$check" --library "$library" || fail "the header, the library and bindings/c/abi.txt differ"

# SCRIPT SAID…: what a script of sed makes of the header, and what must be said of it.
plant() {
  local script=$1 said
  shift
  sed -E "$script" "$source_dir/include/kiln/kiln.h" >"$scratch/kiln.h"
  if "$check" --header "$scratch/kiln.h" --library "$library" 2>"$scratch/said"; then fail "it did not notice '$script'"; fi
  for said in "$@"; do
    grep -qF -- "$said" "$scratch/said" || fail "'$said' is not in: $(cat "$scratch/said")"
  done
}
plant 's/^  KILN_REFUSED = 5,/  KILN_REFUSED = 13,/
       s/^  size_t shared_bytes;/  uint32_t shared_bytes, flags;/
       s/int64_t timeout_ns, (kiln_kernel)/int timeout_ns, \1/
       s/^(typedef void .*kiln_release_callback).*/\1)(void* user, int why);/
       s/^KILN_C_API size_t kiln_text_bytes.*//
       s/^KILN_C_API int kiln_c_api_version.*/&\nKILN_C_API int kiln_new(void);/' \
  '-  5 KILN_REFUSED' '-  40 8 shared_bytes: size_t' '-function kiln_session_get: ' '-callback kiln_release_callback: ' \
  'kiln_text_bytes is exported, but not declared' 'kiln_new is declared, but not exported' 'tools/check_abi --update'
plant 's/^  uint32_t least_grid;/  uint32_t least_grid; int flag;/' 'has a hole'

# A change is announced by a new version, and not without one.
sed 's/^KILN_C_API int kiln_c_api_version.*/&\nKILN_C_API int kiln_new(void);/' \
  "$source_dir/include/kiln/kiln.h" >"$scratch/kiln.h"
cp "$source_dir/bindings/c/abi.txt" "$scratch/abi.txt"
update=("$check" --update --header "$scratch/kiln.h" --abi "$scratch/abi.txt")
! "${update[@]}" 2>/dev/null || fail "a change was announced without a new version"
sed -i 's/^#define KILN_C_API_VERSION .*/#define KILN_C_API_VERSION 1000/' "$scratch/kiln.h"
"${update[@]}" >/dev/null || fail "a change could not be announced"
"$check" --header "$scratch/kiln.h" --abi "$scratch/abi.txt" || fail "it complains of a change that was announced"
