#pragma once

#include <string>
#include <string_view>

#include <kiln/export.hpp>
#include <kiln/result.hpp>

namespace kiln {

/// What the bytes of an artifact are.
enum class Form : unsigned char {
  Cubin = 1,
  Ptx = 2,
  LtoIr = 3,
  OpenClBinary = 4,
  Cccl = 5,     ///< an algorithm of the CCCL library's, for a capability: docs/cccl-format.md
  Foreign = 6,  ///< what another system compiled and only that system can read: ForeignCache
};
KILN_API const char* to_string(Form form);

/// For what a unit is compiled. A value; it needs no device.
struct KILN_API Target {
  /// CUDA: `sm_80`, `sm_90a` and the like. OpenCL: the device's own description. Of another system: its name.
  std::string architecture;
  Form form = Form::Cubin;

  /// `sm_90`, `sm_90a`, `sm_100f` → machine code; `compute_90` → PTX; `lto_90` → LTO-IR; `cccl_90` → an algorithm
  /// of CCCL's, which is what a unit of that kind gives for `sm_90` too.
  static Result<Target> parse(std::string_view text);
  static Target sm(int number) { return {"sm_" + std::to_string(number), Form::Cubin}; }
  static Target opencl(std::string device) { return {std::move(device), Form::OpenClBinary}; }
  /// Of what kiln keeps for another system and neither compiles nor loads.
  static Target foreign(std::string system) { return {std::move(system), Form::Foreign}; }

  /// What a person calls it: the text that `parse` takes back, the OpenCL device, or the other system.
  std::string name() const;

  friend bool operator==(const Target& a, const Target& b) {
    return a.form == b.form && a.architecture == b.architecture;
  }
};

}  // namespace kiln
