// SPDX-License-Identifier: Apache-2.0
// NVIDIA's library of algorithms alone, as used by cuda.compute: it builds one predefined spec, whose name SOURCE
// holds, and serializes it, every time again. It has no cache, so its rows show what a cache saves.
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <kiln/cccl.hpp>

#include "backends/cccl/cccl_library.hpp"
#include "backends/cccl/output_capture.hpp"
#include "backends/cuda/nvjitlink_library.hpp"
#include "backends/cuda/nvrtc_library.hpp"
#include "base/error.hpp"
#include "bench/peers/adapters/adapter.hpp"
#include "bench/peers/adapters/spec.hpp"

namespace {

using kiln::peers::Answer;
using kiln::peers::Question;

struct Found {
  kiln::CcclCandidate library;
  std::vector<std::string> requirements;
  std::string toolkit;
};

// Finds the library, and the NVRTC and linker that kiln would use for it.
kiln::Result<Found> find() {
  auto library = kiln::choose_cccl("");
  if (!library) return std::move(library).error();
  const auto search = kiln::NvrtcSearch::of_this_process("");
  const auto nvrtc = kiln::choose_nvrtc(search);
  const auto linker = kiln::choose_nvjitlink("", search);
  if (!nvrtc || !linker) return kiln::make_error(kiln::Code::Unavailable, "NVRTC or its nvJitLink was not found");
  const std::string directory = nvrtc->path.substr(0, nvrtc->path.rfind('/'));
  return Found{std::move(*library),
               {directory + "/stubs/libcuda.so", nvrtc->path, linker->path},
               directory.substr(0, directory.rfind('/')) + "/include"};
}

class Program {
 public:
  std::string get(const Question& asked) {
    const kiln::Status built = build(asked);
    return built ? std::string() : built.error().message;
  }

  void finish(Answer& answer) const {
    answer.code = code_;
    answer.compiles = compiles_;
  }

 private:
  kiln::Status build(const Question& asked) {
    const auto spec = kiln::cccl::find_predefined(kiln::peers::spec_name(asked));
    if (!spec) return spec.error();
    if (!library_) {
      auto found = find();
      if (!found) return std::move(found).error();
      auto library = kiln::CcclLibrary::open(found->library, found->requirements);
      if (!library) return std::move(library).error();
      options_.headers = found->library.headers;
      options_.toolkit = found->toolkit;
      options_.capability = std::atoi(asked.arch.c_str() + std::string_view("sm_").size());
      library_ = std::move(*library);
    }
    const kiln::OutputCapture capture;  // the library prints, and stdout is for the answer
    ++compiles_;
    const auto made = kiln::CcclLibrary::compile(library_, *spec, options_);
    if (!made) return made.error();
    auto blob = made->serialize();
    if (!blob) return std::move(blob).error();
    code_ = std::move(*blob);
    return {};
  }

  std::shared_ptr<const kiln::CcclLibrary> library_;
  kiln::CcclBuildOptions options_;
  std::size_t compiles_ = 0;
  std::string code_;
};

}  // namespace

int main(int argc, char** argv) {
  if (const auto found = find(); !found) {
    std::fprintf(stderr, "%s\n", found.error().message.c_str());
    return kiln::peers::kNotHere;
  } else if (kiln::peers::wants_version(argc, argv)) {
    std::printf("%s\n", found->library.version.c_str());
    return 0;
  }
  return kiln::peers::ask(argc, argv, Program());
}
