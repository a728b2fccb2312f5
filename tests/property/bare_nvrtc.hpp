// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <kiln/target.hpp>
#include <kiln/unit.hpp>

#include "backends/cuda/nvrtc_library.hpp"

namespace kiln::test {

/// The result of NVRTC for a unit, compiled in this process and without kiln's compilers.
struct BareResult {
  bool ok = false;
  std::string bytes;
  std::vector<std::string> symbols;
  std::string log;
};

class BareNvrtc {
 public:
  BareResult compile(const std::string& library, const Unit& unit, const Target& target) {
    auto& nvrtc = libraries_[library];
    if (nvrtc == nullptr) nvrtc = NvrtcLibrary::open(library).value();
    std::vector<const char*> names;
    std::vector<const char*> contents;
    for (const Header& header : unit.headers()) {
      names.push_back(header.name.c_str());
      contents.push_back(header.content.c_str());
    }
    const bool ptx = target.form == Form::Ptx;
    std::vector<std::string> options{"--gpu-architecture=" +
                                     (ptx ? "compute_" + target.architecture.substr(3) : target.architecture)};
    for (const std::string& option : unit.options()) options.push_back(option);
    for (const IncludeRoot& root : unit.include_roots()) options.push_back("-I" + root.path);
    if (nvrtc->version >= CudaVersion{12, 9}) options.emplace_back("--no-cache");
    std::vector<const char*> texts;
    for (const std::string& option : options) texts.push_back(option.c_str());

    BareResult result;
    NvrtcProgram* program = nullptr;
    if (nvrtc->create(&program, unit.full_source().c_str(), unit.name().c_str(), static_cast<int>(names.size()),
                      contents.data(), names.data()) != 0) {
      return result;
    }
    for (const std::string& entry : unit.entries()) nvrtc->add_name(program, entry.c_str());
    result.ok = nvrtc->compile(program, static_cast<int>(texts.size()), texts.data()) == 0;
    if (result.ok) {
      for (const std::string& entry : unit.entries()) {
        const char* symbol = nullptr;
        result.ok = result.ok && nvrtc->lowered_name(program, entry.c_str(), &symbol) == 0;
        result.symbols.emplace_back(symbol != nullptr ? symbol : "");
      }
      std::size_t size = 0;
      (ptx ? nvrtc->ptx_size : nvrtc->cubin_size)(program, &size);
      result.bytes.resize(size);
      (ptx ? nvrtc->ptx : nvrtc->cubin)(program, result.bytes.data());
    } else {
      std::size_t size = 0;
      nvrtc->log_size(program, &size);
      result.log.resize(size);
      nvrtc->log(program, result.log.data());
    }
    nvrtc->destroy(&program);
    return result;
  }

 private:
  std::map<std::string, std::shared_ptr<const NvrtcLibrary>> libraries_;
};

}  // namespace kiln::test
