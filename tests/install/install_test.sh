#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build into a fresh prefix, moves it, and uses it like a user: with CMake and with pkg-config, twice.
#   install_test.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$1
build_dir=$2

. "$(dirname "$0")/../support/processes/scratch.sh"
export HOME=$scratch XDG_CACHE_HOME=$scratch/cache

cmake --install "$build_dir" --prefix "$scratch/first" >/dev/null
# The installed files must not contain the paths of the installation, the build or the sources.
mv "$scratch/first" "$scratch/prefix"
prefix=$scratch/prefix
! grep -rIl -e "$source_dir" -e "$scratch/first" "$prefix" || fail "the files above contain a path of this machine"

"$source_dir/tools/check_hardening" "$prefix" || fail "the binaries above lack a mitigation"

extra=$(cd "$prefix" && find . -type f -name '*.hpp' ! -path './include/kiln/*')
[ -z "$extra" ] || fail "headers outside include/kiln: $extra"
library=$(find "$prefix" -name 'libkiln.so')
foreign=$(nm -DC --defined-only "$(find "$prefix" -name 'libkiln-runtime.so')" | cut -d' ' -f3- |
  grep -Ev '^(vtable for |typeinfo (name )?for |guard variable for )?kiln::runtime::' || true)
[ -z "$foreign" ] || fail "libkiln-runtime.so exports names of other libraries: $foreign"
known=$(nm -DC "$library")
! grep -q 'kiln::runtime::' <<<"$known" || fail "libkiln.so refers to libkiln-runtime.so"

for completion in bash-completion/completions/kiln zsh/site-functions/_kiln fish/vendor_completions.d/kiln.fish; do
  grep -q kiln "$prefix/share/$completion" || fail "missing completion in share/$completion"
done
zgrep -q '^.SS kiln compile' "$prefix/share/man/man1/kiln.1.gz" || fail "missing manual page in share/man/man1"
grep -q schema_version "$prefix/share/kiln/schemas/compile.json" || fail "missing schemas in share/kiln/schemas"

run_twice() {
  rm -rf "$XDG_CACHE_HOME"
  "$1" >"$scratch/once.txt" || fail "$1 failed: $(cat "$scratch/once.txt")"
  "$1" >"$scratch/twice.txt" || fail "$1 failed the second time: $(cat "$scratch/twice.txt")"
  grep -q 'compiled' "$scratch/once.txt" || fail "the first run compiled nothing: $(cat "$scratch/once.txt")"
  grep -q '^hit .* disk ' "$scratch/twice.txt" || fail "the second run did not hit the disk: $(cat "$scratch/twice.txt")"
}

cmake -G Ninja -S "$source_dir/examples/installed" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror" >/dev/null
cmake --build "$scratch/build" >/dev/null
run_twice "$scratch/build/saxpy"

export PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name kiln.pc)")
c++ -std=c++17 "$source_dir/examples/installed/saxpy.cpp" -o "$scratch/saxpy" $(pkg-config --cflags --libs kiln) \
  "-Wl,-rpath,$(dirname "$library")"
run_twice "$scratch/saxpy"
cat "$scratch/once.txt" "$scratch/twice.txt"

# The runtime model has separate components, on top of the library.
for component in runtime runtime_development; do
  cmake --install "$build_dir" --prefix "$scratch/component" --component $component >/dev/null
done
[ -z "$(find "$scratch/component" -name 'libkiln.so*' -o -name kiln.hpp)" ] || fail "the components contain extra files"
[ -f "$scratch/component/include/kiln/runtime.hpp" ] || fail "the components lack their header"
mkdir "$scratch/decides"
cat >"$scratch/decides/main.cpp" <<'EOF'
#include <kiln/runtime.hpp>

#include <cstdio>

using namespace kiln::runtime;
using Twice = kiln::Result<int>(Dispatch&, int);
kiln::Result<int> twice_on_cpu(Dispatch& dispatch, int x) {
  std::printf("%s\n", dispatch.decision().explanation.c_str());
  return 2 * x;
}
inline constexpr auto kTwice = operation<Twice>("twice", PrecisionClass::Metric,
                                                Implementation<Twice>{
    {Backend::Cpu, Robustness::Exact, Precision::Fp64, Determinism::Deterministic}, &twice_on_cpu});

int main() {
  Runtime runtime(kiln::Session::open().value());
  DispatchRequest request;
  request.rows = 1;
  return run(runtime, kTwice, request, 21).value() == 42 ? 0 : 1;
}
EOF
cat >"$scratch/decides/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.16)
project(decides LANGUAGES CXX)
find_package(kiln 0.1 REQUIRED COMPONENTS runtime)
set(CMAKE_CXX_STANDARD 17)
add_executable(decides main.cpp)
target_link_libraries(decides PRIVATE kiln::runtime)
EOF
cmake -G Ninja -S "$scratch/decides" -B "$scratch/decides/build" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror" >/dev/null
cmake --build "$scratch/decides/build" >"$scratch/decides.txt" || fail "decides: $(cat "$scratch/decides.txt")"
"$scratch/decides/build/decides" || fail "a program that uses kiln-runtime failed"

# A unit with headers is compiled by the worker, which must be found at its installed location.
printf '#include "half.h"\nextern "C" __global__ void k(float* x) { *x *= HALF; }\n' >"$scratch/k.cu"
printf '#define HALF 0.5f\n' >"$scratch/half.h"
touch -d '1 minute ago' "$scratch/half.h"
for answer in once twice; do
  (cd "$scratch" && "$prefix/bin/kiln" compile k.cu --arch sm_80 --entry k --json) >"$scratch/$answer.txt"
done
grep -q '"origin": *"disk"' "$scratch/twice.txt" || fail "kiln compiled again: $(cat "$scratch"/{once,twice}.txt)"

# A project that embeds its kernels. A second build does nothing, and an edited header rebuilds the bundle, with every
# generator.
for generator in Ninja 'Unix Makefiles'; do
  rm -rf "$scratch/embedded"
  cp -r "$source_dir/examples/embedded" "$scratch/embedded"
  cat >"$scratch/embedded/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.16)
project(elsewhere LANGUAGES CXX)
find_package(kiln 0.1 REQUIRED)
set(CMAKE_CXX_STANDARD 17)
add_executable(embedded main.cpp)
target_link_libraries(embedded PRIVATE kiln::kiln)
kiln_add_bundle(embedded MANIFEST kiln.toml)
EOF
  build=$scratch/embedded/build
  bundle=$build/kiln/embedded.kiln
  build_and_run() {
    cmake --build "$build" >"$scratch/build.txt" 2>&1 || fail "$generator: $(cat "$scratch/build.txt")"
    KILN_COMPILE=never "$build/embedded" >"$scratch/embedded.txt" || fail "$generator: embedded failed"
    grep -qx 'compiled: 0' "$scratch/embedded.txt" || fail "$generator: $(cat "$scratch/embedded.txt")"
  }
  cmake -G "$generator" -S "$scratch/embedded" -B "$build" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Wpedantic -Werror" >/dev/null
  build_and_run
  first=$(stat -c %y "$bundle" "$build/embedded")
  build_and_run
  [ "$(stat -c %y "$bundle" "$build/embedded")" = "$first" ] || fail "$generator: the second build rebuilt it"
  digest=$(sha256sum <"$bundle")
  sleep 1.1  # Make compares whole seconds on some file systems
  sed -i 's/width - 1/width - 2/' "$scratch/embedded/kernels/grid.cuh"
  build_and_run
  [ "$(sha256sum <"$bundle")" != "$digest" ] || fail "$generator: an edited header did not rebuild the bundle"
done
