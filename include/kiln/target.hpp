// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <kiln/export.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// The format of an artifact's bytes.
enum class Form : unsigned char {
  Cubin = 1,
  Ptx = 2,
  LtoIr = 3,
  OpenClBinary = 4,
  Cccl = 5,      ///< a compiled CCCL algorithm for a compute capability: docs/internals/formats/small-files.md
  External = 6,  ///< code that another system compiled and only that system can read: ExternalCache
};
KILN_API const char* to_string(Form form);

/// The architecture and format that a unit is compiled for. It needs no device.
struct KILN_API Target {
  /// CUDA: `sm_80`, `sm_90a` and the like. OpenCL: the device's own description. External code: the name of the system.
  std::string architecture;
  Form form = Form::Cubin;

  /// Parses the name of a target: `sm_90`, `sm_90a`, `sm_100f` for machine code, `compute_90` for PTX, `lto_90` for
  /// LTO-IR, `cccl_90` for a CCCL algorithm. A unit of kind "cccl" compiles to that form for `sm_90` too.
  [[nodiscard]] static Result<Target> parse(std::string_view text);
  [[nodiscard]] static Target sm(int number) { return {"sm_" + std::to_string(number), Form::Cubin}; }
  [[nodiscard]] static Target opencl(std::string device) { return {std::move(device), Form::OpenClBinary}; }
  /// Returns the target of code that kiln stores for another system and neither compiles nor loads.
  [[nodiscard]] static Target external(std::string system) { return {std::move(system), Form::External}; }

  /// Returns the display name: the text that `parse` accepts, the OpenCL device, or the other system.
  std::string name() const;

  friend bool operator==(const Target& a, const Target& b) {
    return a.form == b.form && a.architecture == b.architecture;
  }
  friend bool operator!=(const Target& a, const Target& b) { return !(a == b); }
};

}  // namespace kiln
