#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The static build: programs that need only glibc, and a libkiln.a that programs can link together with other libraries.
#   static_test.sh SOURCE_DIR BUILD_DIR      BUILD_DIR is the preset's `static`
set -euo pipefail
source_dir=$1
build_dir=$2
. "$(dirname "$0")/../support/processes/scratch.sh"
export HOME=$scratch XDG_CACHE_HOME=$scratch/cache

cmake --install "$build_dir" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/prefix"
prefix=$scratch/prefix
for program in bin/kiln libexec/kiln/kiln-worker; do
  needs=$(readelf -d "$prefix/$program" | sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p' | tr '\n' ' ')
  others=$(tr ' ' '\n' <<<"$needs" | grep -Ev '^(libc\.so\.6|libm\.so\.6|ld-linux-.*|)$' || true)
  [ -z "$others" ] || fail "$program needs $others"
  echo "$program: $(stat -c %s "$prefix/$program") bytes, needs $needs, glibc $(objdump -T "$prefix/$program" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | cut -d_ -f2) or newer"
done
[ -z "$(find "$prefix" -name '*.so*')" ] || fail "there are shared libraries"
archive=$(find "$prefix" -name libkiln.a)
unexpected=$(nm -gC --defined-only "$archive" | cut -d' ' -f3- | grep -Ev '^(|(vtable for |typeinfo (name )?for |guard variable for )?kiln::.*|kiln_.*|.*kiln_whole\.o:)$' || true)
[ -z "$unexpected" ] || fail "libkiln.a exports names that are not kiln's: $unexpected"
echo "libkiln.a: $(stat -c %s "$archive") bytes, $(nm -g --defined-only "$archive" | grep -c ' ') exported names"

# A C program that has its own libcrypto. It is in the directory where the worker is searched.
export PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name kiln.pc)")
sed 's|^int main(void) {|#include <openssl/sha.h>\nint main(void) {\n  unsigned char digest[32];\n  if (SHA256((const unsigned char*)"", 0, digest) == NULL \|\| digest[0] != 0xe3) return 3;|' \
  "$source_dir/tests/packages/uses_kiln/uses_kiln.c" >"$scratch/uses_kiln.c"
cc -std=c11 -Wall -Wextra -Werror "$scratch/uses_kiln.c" -o "$prefix/bin/uses_kiln" $(pkg-config --static --cflags --libs kiln) -lcrypto
needed=$(ldd "$prefix/bin/uses_kiln")
! grep -q libkiln <<<"$needed" || fail "the program needs libkiln.so"
grep -q libcrypto <<<"$needed" || fail "the program does not use its own libcrypto"
"$prefix/bin/uses_kiln"

# With CMake, in C++.
cmake -G Ninja -S "$source_dir/examples/installed" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror" >/dev/null
cmake --build "$scratch/build" >"$scratch/build.txt" 2>&1 || fail "$(cat "$scratch/build.txt")"
cp "$scratch/build/saxpy" "$prefix/bin"
"$prefix/bin/saxpy" >"$scratch/once.txt" || fail "$(cat "$scratch/once.txt")"
"$prefix/bin/saxpy" >"$scratch/twice.txt" || fail "$(cat "$scratch/twice.txt")"
grep -q '^hit .* disk ' "$scratch/twice.txt" || fail "the second run did not hit the disk: $(cat "$scratch/twice.txt")"
echo "a C and a C++ program contain kiln together with another libcrypto"
