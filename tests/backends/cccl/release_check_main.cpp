// SPDX-License-Identifier: Apache-2.0
// Runs the check of CCCL libraries on one library, whether kiln knows its release or not:
//   cccl_release_check LIBRARY NVRTC [ALGORITHM…]
// Prints one line per algorithm: name, result, seconds, number of kernels or the reason. Exit code 1 if one failed.
#include <cstdio>
#include <cstring>
#include <string>

#include "backends/cccl/cccl_check.hpp"
#include "backends/cccl/cccl_compiler.hpp"
#include "core/cccl_envelope.hpp"
#include "worker/worker_compiler.hpp"

using namespace kiln;

namespace {

bool is_wanted(const char* algorithm, int count, char** names) {
  for (int i = 0; i < count; ++i) {
    if (std::strcmp(names[i], algorithm) == 0) return true;
  }
  return count == 0;
}

bool check(Compiler& compiler, const CompilerIdentity& identity, cccl::Algorithm algorithm) {
  const Unit unit = Unit::of_kind(kCcclCheckKind, to_string(algorithm), cccl_check_spec(algorithm).text());
  const Target target{"sm_" + std::to_string(kCcclCheckCapability), Form::Cccl};
  const auto result = compiler.compile(Recipe{unit, target, identity, "/"}, {});
  if (!result) {
    std::printf("%s failed: %s\n%s", to_string(algorithm), result.error().message.c_str(), result.error().log.c_str());
    return false;
  }
  const auto envelope = decode_cccl_envelope(result->artifact.bytes.view());
  std::printf("%s passed %.1f s, %zu kernels\n", to_string(algorithm), result->artifact.metadata.cost_ms / 1000,
              envelope ? envelope->kernels.size() : 0);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  FileDigestCache digests{std::string()};
  WorkerPool pool({"", 1U, std::uint64_t{8} << 30});
  WorkerCompiler::Options options;
  options.pool = &pool;
  WorkerCompiler compiler(std::make_unique<CcclCompiler>(argv[1], argv[2], digests), digests, options, {});
  const auto library = choose_cccl(argv[1]);
  const auto identity = compiler.identity({});
  if (!library || !identity) {
    std::printf("rejected: %s\n", (library ? identity.error() : library.error()).message.c_str());
    return 1;
  }
  std::printf("cuda-cccl %s, %s, build id %s, headers %d, CUDA %d\n", library->version.c_str(),
              library->release != nullptr ? "known" : "unknown", library->build_id.c_str(), library->headers_version,
              library->cuda);
  bool all = true;
  for (int i = 0; i <= static_cast<int>(cccl::Algorithm::SegmentedSort); ++i) {
    const auto algorithm = static_cast<cccl::Algorithm>(i);
    if (is_wanted(to_string(algorithm), argc - 3, argv + 3)) all = check(compiler, *identity, algorithm) && all;
    std::fflush(stdout);
  }
  return all ? 0 : 1;
}
