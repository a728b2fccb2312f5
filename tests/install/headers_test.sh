#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles each public header alone as C++17 with the first of the given compilers, and all together with each of them.
# The documented calls compile without a warning of -Wextra, as C++17 and C++20, with each of them.
#   headers_test.sh INCLUDE_DIR RUNTIME_INCLUDE_DIR COMPILER…
set -euo pipefail
include=$1
runtime=$2
shift 2
check() { "$1" -std="${3:-c++17}" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ -I "$include" -I "$runtime" - <<<"$2"; }

calls='#include <kiln/kiln.hpp>
#include <kiln/stream.hpp>
kiln::Status calls(kiln::Session& session, const kiln::Stream& stream, const kiln::Buffer& x) {
  kiln::Result<kiln::Unit> unit = kiln::Unit::cuda_file("scale.cu");
  if (!unit) return unit.error();
  kiln::SessionOptions options{};
  options.trust.keys.push_back({"ed25519:…", {"acme/vision"}});
  const kiln::Kernel kernel = session.get(unit->with_entry("scale"), "scale", std::chrono::seconds(60)).value();
  if (auto launched = kernel.launch({kiln::Grid(1), kiln::Block(64), stream}, x, 2.0f); !launched) return launched;
  return kernel.launch({kiln::Grid(1, 2), kiln::Block(8, 8), stream, 1024}, x, 2.0f);
}'

for folder in "$include" "$runtime"; do
  while read -r header; do check "$1" "#include <$header>"; done < <(cd "$folder" && find kiln -name '*.hpp' | sort)
done
for compiler in "$@"; do
  check "$compiler" $'#include <kiln/kiln.hpp>\n#include <kiln/runtime.hpp>'
  for standard in c++17 c++20; do check "$compiler" "$calls" "$standard"; done
done
