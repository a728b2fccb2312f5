// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kiln/kiln.hpp>
#include <kiln/runtime.hpp>

#include "spatial/column.hpp"

namespace spatial {

/// The results that `spatial demo` prints.
struct DemoReport {
  std::string operation;
  std::string backend;  ///< as requested
  std::size_t points = 0;
  std::size_t polygons = 0;
  std::string counted = "pairs";  ///< or "bytes" of WKB
  std::size_t count = 0;
  std::uint64_t digest = 0;
  kiln::runtime::Decision decision;
  double upload_ms = 0;
  double warmup_ms = 0;               ///< time waited for the units of the operation, before it began
  double ms = 0;                      ///< time of the operation until the result is on the host
  std::vector<std::string> compiled;  ///< units, in the order in which they became ready
  std::vector<kiln::UndeclaredUse> undeclared;

  void take(const Pairs& result) {
    count = result.size();
    digest = spatial::digest(result);
  }
  void take(const WkbColumn& result) {
    counted = "bytes";
    count = result.bytes.size();
    digest = byte_digest(result.bytes);
  }
};

void print_text(const DemoReport& report);
void print_json(const DemoReport& report);

}  // namespace spatial
