// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kiln/unit.hpp>

#include "backends/toy/toy_compiler.hpp"

namespace kiln::test {

/// Returns examples/kernels/saxpy.cl in the toy language.
inline Unit toy_saxpy() {
  return Unit::of_kind(kToyKind, "saxpy.toy",
                       "kernel saxpy count float buffer buffer\n"
                       "  scalar 1\n  load 2\n  mul\n  load 3\n  add\n  store 3\n"
                       "kernel scale count float buffer\n"
                       "  scalar 1\n  load 2\n  mul\n  store 2\n")
      .with_entry("saxpy")
      .with_entry("scale");
}

}  // namespace kiln::test
