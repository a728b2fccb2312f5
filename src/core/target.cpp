// SPDX-License-Identifier: Apache-2.0
#include <kiln/target.hpp>

#include <kiln/backend.hpp>

#include <cctype>

#include "base/error.hpp"

namespace kiln {

const char* to_string(Form form) {
  switch (form) {
    case Form::Cubin: return "cubin";
    case Form::Ptx: return "ptx";
    case Form::LtoIr: return "lto-ir";
    case Form::OpenClBinary: return "opencl-binary";
    case Form::Cccl: return "cccl";
    case Form::External: return "foreign";
  }
  return "unknown";
}

const char* to_string(Backend backend) {
  switch (backend) {
    case Backend::Cuda: return "cuda";
    case Backend::OpenCl: return "opencl";
  }
  return "unknown";
}

Result<Backend> parse_backend(std::string_view text) {
  for (const Backend backend : {Backend::Cuda, Backend::OpenCl}) {
    if (text == to_string(backend)) return backend;
  }
  return make_error(Code::InvalidArgument, "'" + std::string(text) + "' is not a backend; use cuda or opencl");
}

Result<Target> Target::parse(std::string_view text) {
  static constexpr std::pair<std::string_view, Form> kForms[] = {
      {"sm_", Form::Cubin}, {"compute_", Form::Ptx}, {"lto_", Form::LtoIr}, {"cccl_", Form::Cccl}};
  for (const auto& [prefix, form] : kForms) {
    if (text.substr(0, prefix.size()) != prefix) continue;
    std::string_view number = text.substr(prefix.size());
    if (!number.empty() && (number.back() == 'a' || number.back() == 'f')) number.remove_suffix(1);
    bool digits = number.size() >= 2 && number.size() <= 4;
    for (const char c : number) digits = digits && std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digits) break;
    return Target{"sm_" + std::string(text.substr(prefix.size())), form};
  }
  return make_error(Code::InvalidArgument,
                    "'" + std::string(text) +
                        "' is not an architecture; use sm_90 (machine code), compute_90 (PTX) or "
                        "lto_90 (LTO-IR)");
}

std::string Target::name() const {
  const std::string number = architecture.size() > 3 ? architecture.substr(3) : architecture;
  switch (form) {
    case Form::Ptx: return "compute_" + number;
    case Form::LtoIr: return "lto_" + number;
    case Form::Cccl: return "cccl_" + number;
    case Form::Cubin:
    case Form::OpenClBinary:
    case Form::External: break;
  }
  return architecture;
}

}  // namespace kiln
