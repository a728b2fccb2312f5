// SPDX-License-Identifier: Apache-2.0
#include "bench/support/bare_nvrtc.hpp"

#include <vector>

#include "base/error.hpp"

namespace kiln::bench {

Result<std::string> compile_with_bare_nvrtc(const NvrtcLibrary& nvrtc, const Unit& unit,
                                            const std::string& architecture) {
  std::vector<std::string> options{"--gpu-architecture=" + architecture};
  options.insert(options.end(), unit.options().begin(), unit.options().end());
  for (const IncludeRoot& root : unit.include_roots()) options.push_back("-I" + root.path);
  if (nvrtc.version >= CudaVersion{12, 9}) options.emplace_back("--no-cache");
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  NvrtcProgram* program = nullptr;
  std::size_t size = 0;
  std::string cubin;
  int result = nvrtc.create(&program, unit.full_source().c_str(), unit.name().c_str(), 0, nullptr, nullptr);
  for (std::size_t i = 0; result == 0 && i < unit.entries().size(); ++i) {
    result = nvrtc.add_name(program, unit.entries()[i].c_str());
  }
  if (result == 0) result = nvrtc.compile(program, static_cast<int>(texts.size()), texts.data());
  if (result == 0) result = nvrtc.cubin_size(program, &size);
  cubin.resize(size);
  if (result == 0) result = nvrtc.cubin(program, cubin.data());
  nvrtc.destroy(&program);
  if (result != 0) return make_error(Code::CompileFailed, std::string("bare NVRTC: ") + nvrtc.error_string(result));
  return cubin;
}

}  // namespace kiln::bench
