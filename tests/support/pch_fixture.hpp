#pragma once

#include <sys/stat.h>

#include "support/pch_process.hpp"

namespace kiln::test {

/// A folder with a few headers, and units that begin with them. Small ones: their compiles take some hundredths of a
/// second where CUB's take seconds.
class PchTest : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    write("r1/later.h", "#pragma once\n#define LATER 5\n");
    write("r2/deep.h", "#pragma once\ntemplate <int N> struct Deep { static constexpr int value = N + 100; };\n");
    write("r2/wide.h",
          "#ifndef WIDE\n#define WIDE\n#include <deep.h>\n"
          "static __device__ __forceinline__ int wide(int x) { return x * Deep<7>::value; }\n#endif\n");
    std::filesystem::create_directories(folder_.path("here"));
    settle();
  }

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    spit(folder_.path(name), text);
  }
  // Until what was written is old enough for its content to be trusted.
  static void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

  std::unique_ptr<PchProcess> process(PchProcess::Options options = {}) {
    if (options.folder.empty()) options.folder = folder_.path("cache");
    options.working_directory = folder_.path("here");
    return std::make_unique<PchProcess>(std::move(options));
  }

  // A unit that begins with the headers and does something of its own.
  Unit unit(int number) const { return unit(number, start_); }
  Unit unit(int number, const std::string& start) const {
    const std::string n = std::to_string(number);
    return Unit::cuda("unit" + n + ".cu",
                      start + "extern \"C\" __global__ void k" + n + "(int* p) { p[0] = wide(p[1]) + " + n + "; }\n")
        .option("-std=c++17")
        .include_root(folder_.path("r1"))
        .include_root(folder_.path("r2"))
        .entry("k" + n);
  }

  // A process that has made the headers of these units and used them once.
  std::unique_ptr<PchProcess> process_with_headers(PchProcess::Options options = {}) {
    auto made = process(std::move(options));
    made->expect_company(unit(1));
    const Seen first(made->compile(unit(1)));
    EXPECT_TRUE(first.ok) << first.log;
    EXPECT_EQ(made->kept(), 1U) << "nothing was made";
    EXPECT_TRUE(made->compile(unit(2)).ok());
    EXPECT_EQ(made->used(), 1U) << "what was made was not used";
    return made;
  }

  // What a unit gives now, in this process and without any precompiled header.
  Seen truth(PchProcess& process, const Unit& unit) { return compile_here(process.recipe(unit)); }

  TemporaryDirectory folder_;
  std::string start_ = "#include <wide.h>\n";
};

}  // namespace kiln::test
