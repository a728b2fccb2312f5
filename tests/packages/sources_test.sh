#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The SBOM is correct and complete, and the source tarball is reproducible and can be configured without git.
#   sources_test.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$1
build_dir=$2
. "$(dirname "$0")/../support/processes/scratch.sh"
# WORDS COMMAND…: the command must fail and print these words.
refuses() {
  local words=$1
  shift
  if "$@" >"$scratch/said" 2>&1; then fail "$* did not fail"; fi
  grep -q "$words" "$scratch/said" || fail "$* printed $(cat "$scratch/said")"
}

mkdir -p "$scratch"/tree/{tools,docs/internals} "$scratch/build"
cp "$source_dir/tools/make_sbom" "$scratch/tree/tools"
cp "$source_dir/docs/internals/dependencies.md" "$scratch/tree/docs/internals"
cp "$source_dir/CMakeLists.txt" "$source_dir/CHANGELOG.md" "$scratch/tree"
cp "$build_dir/CMakeCache.txt" "$scratch/build"
make_sbom() { SOURCE_DATE_EPOCH=1700000000 "$scratch/tree/tools/make_sbom" "$@"; }

make_sbom "$scratch/build" -o "$scratch/once.json"
make_sbom "$scratch/build" -o "$scratch/twice.json"
cmp "$scratch/once.json" "$scratch/twice.json" || fail "two SBOMs of one build differ"
for part in libcrypto libsodium zstd toml++ nlohmann-json CLI11 xxHash; do
  grep -q "\"name\": \"$part\"" "$scratch/once.json" || fail "$part is missing in the SBOM"
done
refuses 'SPDXID' make_sbom --check <(sed '/"SPDXID": "SPDXRef-zstd"/d' "$scratch/once.json")
refuses 'creationInfo.created' make_sbom --check <(sed 's/"created": .*/"created": "yesterday",/' "$scratch/once.json")
refuses 'not an SPDX license' make_sbom --check <(sed 's/"licenseDeclared": "ISC"/"licenseDeclared": "like MIT, more or less"/' "$scratch/once.json")
# A library that is linked in but not listed, or listed but unknown.
echo 'KILN_LIBZLIB:FILEPATH=/usr/lib/libz.a' >>"$scratch/build/CMakeCache.txt"
refuses 'KILN_LIBZLIB' make_sbom "$scratch/build" -o "$scratch/thrice.json"
cp "$build_dir/CMakeCache.txt" "$scratch/build"
echo '| zlib, static, hidden | nowhere | Zlib | a test |' >>"$scratch/tree/docs/internals/dependencies.md"
refuses 'zlib' make_sbom "$scratch/build" -o "$scratch/thrice.json"

if ! git -C "$source_dir" rev-parse -q --verify HEAD >/dev/null 2>&1; then
  echo "the tarball was not tested: these sources have no history"
  exit 0
fi
mkdir "$scratch"/{first,second}
"$source_dir/tools/make_source_tarball" HEAD "$scratch/first" >/dev/null
(umask 077 && TZ=Asia/Tokyo GZIP=-1 "$source_dir/tools/make_source_tarball" HEAD "$scratch/second" 2>/dev/null) >"$scratch/digest"
cmp "$scratch"/{first,second}/kiln-*.tar.gz || fail "two tarballs of one commit differ"
tar -xzf "$scratch"/first/kiln-*.tar.gz -C "$scratch/first"
unpacked=$(echo "$scratch"/first/kiln-*/)
[ ! -e "$unpacked/.git" ] || fail "the tarball contains .git"
# git must neither be needed nor be found.
GIT_DIR=$scratch/nowhere cmake -S "$unpacked" -B "$scratch/configured" -G Ninja -DKILN_BUILD_TESTS=OFF -DKILN_BUILD_BENCH=OFF \
  -DKILN_BUILD_EXAMPLES=OFF >"$scratch/cmake.txt" 2>&1 || fail "$(cat "$scratch/cmake.txt")"
sed "s#$scratch/second/##" "$scratch/digest"
