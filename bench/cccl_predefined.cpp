// SPDX-License-Identifier: Apache-2.0
// Compiles the predefined CCCL specs in a new process, for the benchmarks of cccl.cpp:
//   kiln-bench-cccl START bare LIBRARY HEADERS TOOLKIT NEEDED…   with the library alone, one after the other, for sm_80
//   kiln-bench-cccl START kiln CACHE TARGET…                     with kiln, all requested at once
// HEADERS and TOOLKIT are include directories, NEEDED the libraries that the library needs to be open. Prints the
// nanoseconds since START, the total number of kernels, the number of specs that were compiled and that were cached,
// the number of precompiled headers that were created and used, how many of them or of the workers failed, and whether
// this process has NVRTC open.
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/cccl.hpp>
#include <kiln/session.hpp>

#include "backends/cccl/cccl_library.hpp"
#include "backends/cuda/cubin.hpp"
#include "base/error.hpp"
#include "base/visible_text.hpp"
#include "bench/support/child_report.hpp"
#include "bench/support/harness.hpp"
#include "core/cccl_envelope.hpp"

namespace kiln::bench {
namespace {

struct Done {
  std::int64_t end = 0;
  std::size_t kernels = 0;
  std::size_t compiled = 0;
  std::size_t found = 0;
  int kept = 0;
  int used = 0;
  int wanting = 0;
};

Result<Done> by_library(const std::string& path, const std::string& headers, const std::string& toolkit,
                        const std::vector<std::string>& needed) {
  const auto candidate = choose_cccl(path);
  if (!candidate) return candidate.error();
  const auto library = CcclLibrary::open(*candidate, needed);
  if (!library) return library.error();
  Done done;
  for (const cccl::Spec& spec : cccl::predefined_specs()) {
    const auto build = CcclLibrary::compile(*library, spec, {80, headers, toolkit, {}, {}});
    if (!build) return build.error();
    if (const auto blob = build->serialize(); !blob) return blob.error();
    const auto contents = read_cubin(build->payload());
    if (!contents) return contents.error();
    done.kernels += contents->kernels.size();
    ++done.compiled;
  }
  done.end = now_ns();
  return done;
}

Result<Done> by_kiln(const char* cache, const std::vector<Target>& targets) {
  std::atomic<int> kept = 0;
  std::atomic<int> used = 0;
  std::atomic<int> wanting = 0;
  SessionOptions options;
  options.settings = {{"cache.dir", cache}};
  // The headers of four targets take 2.3 GB, a little more than the default limit.
  if (targets.size() > 1) options.settings["pch.max_size"] = "4G";
  for (const auto& [name, value] : options.settings) options.locked.insert(name);
  options.on_event = [&](const Event& event) {
    using enum Event::Kind;
    kept += event.kind == PchCreated;
    used += event.kind == PchUsed;
    if (event.kind == ConfigWarning) print_warning(event.message);
    if (event.kind != PchDropped && event.kind != PchUnavailable && event.kind != WorkerUnavailable &&
        event.kind != WorkerLost) {
      return;
    }
    ++wanting;
    std::fprintf(stderr, "%s: %s for %s: %s\n", to_string(event.kind), event.unit.c_str(), event.target.c_str(),
                 event.message.c_str());
  };
  auto session = Session::open(options);
  if (!session) return std::move(session).error();
  const Units units(cccl::predefined_specs().begin(), cccl::predefined_specs().end());
  for (const Target& target : targets) session->request(units, target);
  Done done;
  for (const Target& target : targets) {
    for (const Unit& unit : units) {
      const auto artifact = session->artifact(unit, target);
      if (!artifact) return artifact.error();
      const auto envelope = decode_cccl_envelope(artifact->bytes.view());
      if (!envelope) return envelope.error();
      done.kernels += envelope->kernels.size();
    }
  }
  done.end = now_ns();
  const SessionStatus status = final_status(*session);
  done.compiled = status.compiled;
  done.found = status.cached;
  done.kept = kept;
  done.used = used;
  done.wanting = wanting;
  return done;
}

int report(const Result<Done>& done, std::int64_t start) {
  if (!done) return warn(done.error());
  std::printf("%lld %zu %zu %zu %d %d %d %d\n", static_cast<long long>(done->end - start), done->kernels,
              done->compiled, done->found, done->kept, done->used, done->wanting, nvrtc_is_open() ? 1 : 0);
  std::fflush(stdout);
  return 0;
}

int run(int argc, char** argv) {
  if (argc < 5 || setpriority(PRIO_PROCESS, 0, kNiceness) != 0) return 2;
  const std::int64_t start = std::strtoll(argv[1], nullptr, 10);
  const std::string_view who = argv[2];
  if (who == "bare" && argc > 6) return report(by_library(argv[3], argv[4], argv[5], {argv + 6, argv + argc}), start);
  if (who != "kiln") return 2;
  std::vector<Target> targets;
  for (int i = 4; i < argc; ++i) {
    const auto target = Target::parse(argv[i]);
    if (!target) return 2;
    targets.push_back(*target);
  }
  return report(by_kiln(argv[3], targets), start);
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) { return kiln::bench::run(argc, argv); }
