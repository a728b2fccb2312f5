// SPDX-License-Identifier: Apache-2.0
// jitify2's ProgramCache with a directory on disk, as in its user guide:
//   kiln-bench-peer-jitify2 [--offline] CACHE SOURCE INCLUDE ARCH …
// The source is preprocessed at run time; with `--offline`, before the request, as by jitify2_preprocess at build time.
// The cache loads the code that it compiles into the fake driver of the tests (loaded.hpp); the measured code is what
// the driver receives.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <jitify2.hpp>

#include "bench/peers/adapters/adapter.hpp"
#include "bench/peers/adapters/loaded.hpp"
#include "support/fakes/cuda_driver/image.hpp"

namespace {

namespace fs = std::filesystem;
using kiln::peers::Answer;
using kiln::peers::Question;

constexpr const char* kProgram = "unit";
// As in the user guide.
constexpr std::size_t kMostPrograms = 100;

std::string& loaded() {
  static std::string image;
  return image;
}

}  // namespace

// Replaces the function of the fake driver.
extern "C" __attribute__((visibility("default"))) CUresult cuLibraryLoadData(
    CUlibrary* library, const void* code, CUjit_option* options, void** values, unsigned number,
    CUlibraryOption* library_options, void** library_values, unsigned library_number) {
  static const auto next = reinterpret_cast<decltype(&cuLibraryLoadData)>(dlsym(RTLD_NEXT, "cuLibraryLoadData"));
  const CUresult result = next(library, code, options, values, number, library_options, library_values, library_number);
  if (result == CUDA_SUCCESS) {  // the image is complete then
    const auto* bytes = static_cast<const std::uint8_t*>(code);
    constexpr std::size_t kHeader = 64;
    loaded().assign(static_cast<const char*>(code), kiln::test::driver::cubin_extent({bytes, kHeader}));
  }
  return result;
}

namespace {

jitify2::PreprocessedProgram preprocess(const Question& asked) {
  return jitify2::Program(kProgram, asked.source)->preprocess({"-I" + asked.include, "-arch=" + asked.arch});
}

// Preprocesses in a child process, so that the compiler is not warm here.
std::optional<std::string> preprocessed_by_another(const Question& asked) {
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) return std::nullopt;
  const pid_t child = fork();
  if (child == 0) {
    const auto program = preprocess(asked);
    const std::string text = program ? program->serialize() : std::string();
    _exit(!text.empty() && std::fwrite(text.data(), text.size(), 1, file) == 1 && std::fflush(file) == 0 ? 0 : 1);
  }
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) return std::nullopt;
  std::fseek(file, 0, SEEK_END);
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  if (std::fread(text.data(), text.size(), 1, file) != 1) return std::nullopt;
  std::fclose(file);
  return text;
}

class Program {
 public:
  explicit Program(std::optional<std::string> preprocessed) : preprocessed_(std::move(preprocessed)) {}

  std::string get(const Question& asked) try {
    if (!cache_) open(asked);
    const auto kernel = cache_->get_kernel(key_, kernel_, {}, {}, options_);
    if (!kernel) return kernel.error();
    if (asked.limit) keep(asked);
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }

  void finish(Answer& answer) const {
    answer.code = loaded();
    if (!cache_) return;
    std::size_t others = 0;
    cache_->get_stats(&others, &others, &others, &answer.compiles.emplace());
  }

 private:
  // By default the key contains neither the source nor a header. The cache accepts a custom key: the source is the
  // minimum that distinguishes programs.
  using Cache = jitify2::ProgramCache<std::string>;

  void open(const Question& asked) {
    auto program = preprocessed_ ? jitify2::PreprocessedProgram::deserialize(*preprocessed_) : preprocess(asked);
    key_ = kiln::peers::sha256_of(asked.source);
    kernel_ = kiln::peers::first_kernel(asked.source);
    // NVRTC's own cache is off, as on every side.
    options_ = {"-arch=" + asked.arch, "--no-cache"};
    cache_ = std::make_unique<Cache>(kMostPrograms, *program, nullptr, asked.cache);
  }

  // Its limit is a number of programs: as many programs of this size as fit into the byte limit.
  void keep(const Question& asked) {
    std::size_t largest = 1;
    for (const auto& file : fs::directory_iterator(asked.cache))
      largest = std::max<std::size_t>(largest, file.file_size());
    cache_->resize(kMostPrograms, std::max<std::size_t>(1, *asked.limit / largest));
  }

  const std::optional<std::string> preprocessed_;
  std::string key_;
  std::string kernel_;
  jitify2::OptionsVec options_;
  std::unique_ptr<Cache> cache_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool offline = argc > 1 && std::string_view(argv[1]) == "--offline";
  if (offline) {
    --argc;
    ++argv;
  }
  if (kiln::peers::wants_version(argc, argv)) {  // it has no version except that of its files
    std::printf("of cache version %llx\n",
                static_cast<unsigned long long>(jitify2::serialization::kSerializationVersion));
    return 0;
  }
  if (argc < 5 || !kiln::peers::make_context(argv[4])) return 2;
  std::optional<std::string> preprocessed;
  if (const auto asked = kiln::peers::question(argc, argv); offline && asked) {
    preprocessed = preprocessed_by_another(*asked);
    if (!preprocessed) return 2;
  }
  return kiln::peers::ask(argc, argv, Program(std::move(preprocessed)));
}
