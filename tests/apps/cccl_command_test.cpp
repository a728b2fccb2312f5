// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>

#include "apps/run_kiln.hpp"
#include "support/fixtures/cccl_packages.hpp"
#include "support/fixtures/files.hpp"
#include "support/processes/scoped_env.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

constexpr const char* kLibrary = "cuda/compute/cu13/cccl/libcccl.c.parallel.so";

// A fixture that uses the newest cuda-cccl release that tools/setup.sh installed.
class CcclProgram : public KilnProgram {
 protected:
  void SetUp() override {
    KilnProgram::SetUp();
    if (cccl_package().empty()) GTEST_SKIP() << "no cuda-cccl in .venv: run tools/setup.sh";
  }
  Ran run_cccl(Strings arguments, const std::string& package = cccl_package()) {
    return run(std::move(arguments), {{"KILN_CCCL", package}});
  }
  /// Returns a package whose library has a different build id, like that of an unknown release.
  std::string unknown_package() {
    std::string library = read_text(cccl_package() + "/" + kLibrary);
    const std::size_t note = library.find(std::string("\x14\0\0\0\x03\0\0\0GNU\0", 12));
    EXPECT_NE(note, std::string::npos) << "the library has no build id";
    library[note + 12] = static_cast<char>(library[note + 12] ^ 1);
    fs::create_directories(fs::path(path("other/" + std::string(kLibrary))).parent_path());
    write_text(path("other/" + std::string(kLibrary)), library);
    fs::create_directory_symlink(cccl_package() + "/cuda/cccl", path("other/cuda/cccl"));
    return path("other");
  }
};

TEST_F(CcclProgram, CompilesAlgorithmByNameAndHitsDiskByJson) {
  const Ran first = run_cccl({"compile", "--cccl", "reduce_sum_i32", "--arch", "sm_90", "-o", "out/", "--json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const auto result = first.json()["results"][0];
  EXPECT_EQ(result["file"], "reduce_sum_i32");
  EXPECT_EQ(result["target"], "sm_90");
  EXPECT_EQ(result["form"], "cccl");
  EXPECT_EQ(result["origin"], "compiled");
  EXPECT_GT(fs::file_size(path("out/reduce_sum_i32.sm_90.cccl")), 100'000U);

  const std::string json = R"({"algorithm": "reduce", "iterators": ["i32", "i32"], "operators": ["plus"]})";
  const Ran second = run_cccl({"compile", "--cccl", json, "--arch", "sm_90", "--json"});
  EXPECT_EQ(origins(second), Strings{"disk"}) << second.err;
  EXPECT_EQ(second.json()["results"][0]["file"], "reduce_i32");

  const Ran explained = run_cccl({"explain", "--cccl", json, "--cccl", "select_i32", "--arch", "sm_90", "--json"});
  ASSERT_EQ(explained.json()["results"].size(), 2U) << explained.err;
  EXPECT_EQ(explained.json()["results"][0]["hit"], true);
  EXPECT_EQ(explained.json()["results"][1]["hit"], false);

  write("kiln.toml", "architectures = [\"sm_90\"]\n[[cccl]]\nspec = \"reduce_sum_i32\"\n");
  EXPECT_EQ(origins(run_cccl({"compile", "--manifest", "kiln.toml", "--json"})), Strings{"disk"});
}

TEST_F(CcclProgram, FormatWritesWhatTheLibraryReadsAndMetadataIsShown) {
  const Strings reduce = {"compile", "--cccl", "reduce_sum_i32", "--arch", "sm_90"};
  const auto with = [&](const Strings& more) {
    Strings all = reduce;
    all.insert(all.end(), more.begin(), more.end());
    return run_cccl(all);
  };
  const Ran library = with({"--format", "cccl", "-o", "out/", "--json"});
  ASSERT_EQ(library.exit_code, 0) << library.err;
  const std::string blob = read_text(path("out/reduce_sum_i32.sm_90.blob"));
  EXPECT_TRUE(blob.starts_with("CCCLSER1"));
  const Ran compute = with({"--format", "cuda.compute", "-o", "reduce.compute"});
  EXPECT_EQ(compute.exit_code, 0) << compute.err;
  const std::string whole = read_text(path("reduce.compute"));
  EXPECT_TRUE(whole.starts_with("CCCLPYS1"));
  EXPECT_TRUE(whole.ends_with(blob));

  const auto entries = library.json()["results"][0]["entries"];
  ASSERT_FALSE(entries.empty());
  const auto shown = run({"cache", "show", library.json()["results"][0]["key"], "--json"}).json();
  EXPECT_EQ(shown["cccl"]["capability"], 90);
  EXPECT_GT(shown["cccl"]["policy_bytes"], 0);
  ASSERT_EQ(shown["cccl"]["kernels"].size(), entries.size());
  for (const auto& kernel : shown["cccl"]["kernels"]) {
    const std::string name = kernel;
    EXPECT_TRUE(name.starts_with("_ZN3cub")) << name;
    EXPECT_NE(blob.find(name), std::string::npos) << name;
    EXPECT_EQ(entries[name], name);
  }
}

TEST_F(CcclProgram, FormatIsForCcclAlgorithmsAndFiles) {
  write("k.cu", "extern \"C\" __global__ void k() {}\n");
  for (const Strings& wrong : {Strings{"compile", "k.cu", "--arch", "sm_90", "--format", "cccl", "-o", "k"},
                               Strings{"compile", "--cccl", "select_i32", "--arch", "sm_90", "--format", "cccl"},
                               Strings{"compile", "--cccl", "all", "--arch", "sm_90", "--format", "cccl", "-o", "k"},
                               Strings{"compile", "--cccl", "all", "--arch", "sm_90", "--format", "elf", "-o", "k/"}}) {
    EXPECT_EQ(run_cccl(wrong).exit_code, 2);
  }
}

TEST_F(CcclProgram, ExplainCoversAllPredefinedSpecsPerArchitecture) {
  const Ran ran = run_cccl({"explain", "--cccl", "all", "--arch", "sm_80,sm_90", "--json"});
  EXPECT_EQ(ran.json()["results"].size(), 36U) << ran.err;
}

TEST_F(CcclProgram, InvalidSpecIsUsageError) {
  const Ran name = run_cccl({"compile", "--cccl", "radix_sort", "--arch", "sm_90"});
  EXPECT_EQ(name.exit_code, 2);
  EXPECT_TRUE(name.says("radix_sort_u64_i32")) << name.err;
  const Ran json = run_cccl({"compile", "--cccl", R"({"algorithm": "scan", "iterators": ["i33"]})", "--arch", "sm_90"});
  EXPECT_EQ(json.exit_code, 2);
  EXPECT_TRUE(json.says("iterators[0]")) << json.err;
  const Ran nowhere = run_cccl({"compile", "--cccl", "all"});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_TRUE(nowhere.says("--arch")) << nowhere.err;
}

TEST_F(CcclProgram, UnknownLibraryReleaseIsCheckedThenCompilesAndDoctorReportsIt) {
  const std::string package = unknown_package();
  const auto before = run_cccl({"doctor", "--json"}, package).finding("CCCL");
  EXPECT_EQ(before["state"], "info") << before;
  EXPECT_EQ(detail(before, "passed the check"), "none");
  const Ran compile = run_cccl({"compile", "--cccl", "reduce_sum_i32", "--arch", "sm_90"}, package);
  EXPECT_EQ(compile.exit_code, 0) << compile.err;

  const auto cccl = run_cccl({"doctor", "--json"}, package).finding("CCCL");
  EXPECT_EQ(cccl["state"], "info") << cccl;
  EXPECT_EQ(detail(cccl, "supported"), "compiling only, after a check");
  EXPECT_EQ(detail(cccl, "passed the check"), "reduce");
  EXPECT_NE(detail(cccl, "not checked yet").find("scan"), std::string::npos) << cccl;
  EXPECT_NE(cccl["advice"].get<std::string>().find("pip install cuda-cccl=="), std::string::npos) << cccl;
}

TEST_F(CcclProgram, DoctorReportsLibraryReleaseHeadersAndDependencies) {
  for (const CcclPackage& package : cccl_packages()) {
    if (package.directory.empty()) continue;
    const auto cccl = run_cccl({"doctor", "--json"}, package.directory).finding("CCCL");
    EXPECT_EQ(cccl["state"], "ok") << cccl;
    EXPECT_EQ(detail(cccl, "library"), package.directory + "/" + kLibrary);
    EXPECT_EQ(detail(cccl, "release"), "cuda-cccl " + package.release);
    EXPECT_EQ(detail(cccl, "build id").size(), 40U);
    EXPECT_EQ(detail(cccl, "supported"), "yes");
    EXPECT_EQ(detail(cccl, "headers"), package.directory + "/cuda/cccl/headers/include");
    EXPECT_EQ(detail(cccl, "header version"), package.release.starts_with("1.2") ? "3.6.0" : "3.5.0");
    EXPECT_NE(detail(cccl, "nvJitLink").find("libnvJitLink"), std::string::npos);
    EXPECT_NE(detail(cccl, "driver or stub").find("libcuda"), std::string::npos);
  }
}

TEST_F(CcclProgram, DoctorReportsMissingLibrary) {
  // The tests may run with an active virtual environment, so it is set and unset explicitly.
  const ScopedEnv active("VIRTUAL_ENV", KILN_SOURCE_DIR "/.venv");
  EXPECT_EQ(run({"doctor", "--json"}).finding("CCCL")["state"], "ok") << "the virtual environment contains cuda-cccl";
  const auto none = run({"doctor", "--json"}, {{"VIRTUAL_ENV", ""}}).finding("CCCL");
  EXPECT_EQ(none["state"], "info") << none;
  EXPECT_NE(none["advice"].get<std::string>().find("pip install cuda-cccl"), std::string::npos) << none;
  const auto wrong = run_cccl({"doctor", "--json"}, path("nowhere")).finding("CCCL");
  EXPECT_EQ(wrong["state"], "problem") << wrong;
}

TEST_F(KilnProgram, ManifestAndCommandLineUnitsShareKeys) {
  write("src/k.cu", kSmallKernel);
  write("src/other.cu", "extern \"C\" __global__ void other(int* x) { *x = N; }\n");
  write("src/kiln.toml",
        "architectures = [\"sm_80\", \"sm_90\"]\n[[unit]]\nsource = \"k.cu\"\nentries = [\"k\"]\n"
        "[[unit]]\nsource = \"other.cu\"\noptions = [\"-DN=4\"]\n");
  EXPECT_EQ(origins(run({"compile", "--manifest", "src/kiln.toml", "--json"})), Strings(4, "compiled"));
  EXPECT_EQ(origins(run({"compile", "src/k.cu", "-e", "k", "--arch", "sm_80", "--json"})), Strings{"disk"});
  EXPECT_EQ(origins(run({"compile", "src/other.cu", "-DN=4", "--arch", "sm_90", "--json"})), Strings{"disk"});
  const Ran narrowed = run({"explain", "--manifest", "src/kiln.toml", "--arch", "sm_90", "--check", "--json"});
  EXPECT_EQ(narrowed.exit_code, 0) << narrowed.out;
  EXPECT_EQ(narrowed.json()["results"].size(), 2U) << "--arch replaces the architectures of the manifest";
}

TEST_F(KilnProgram, ManifestErrorHasLineAndColumn) {
  write("kiln.toml", "architectures = [\"sm_80\"]\n[[unit]]\nsorce = \"k.cu\"\n");
  const Ran ran = run({"compile", "--manifest", "kiln.toml"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_TRUE(ran.says("kiln.toml: line 3, column 1: ")) << ran.err;
  EXPECT_TRUE(ran.says("'source'")) << ran.err;
  EXPECT_EQ(run({"compile", "--manifest", "none.toml"}).exit_code, 1);
  const Ran nothing = run({"compile", "--arch", "sm_80"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_TRUE(nothing.says("--manifest")) << nothing.err;
}

}  // namespace
}  // namespace kiln::test
