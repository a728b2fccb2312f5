// kiln-bench: measures what kiln promises, each figure beside what it is compared with, and fails where a promise is
// broken. docs/benchmarks.md says how to read it.
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "bench/benchmarks.hpp"

namespace {

using kiln::bench::Benchmark;

constexpr Benchmark kBenchmarks[] = {
    {"disk_hit", "a hit in a running process, against open + read + close + XXH3 of the same file",
     kiln::bench::disk_hit},
    {"disk_hit_scale", "a hit among 100,000 entries, against one among 100", kiln::bench::disk_hit_scale},
    {"new_process_hit", "a new process's hit, against a program that only hashes, stats, reads and checks",
     kiln::bench::new_process_hit},
    {"cold_compile", "a miss of a kernel on CUB, compiled and stored, against bare NVRTC", kiln::bench::cold_compile},
    {"worker_overhead", "a kernel on CUB through a worker that is warm, against bare NVRTC that is as warm",
     kiln::bench::worker_overhead},
    {"workers_cold8", "eight units on CUB in workers, without and with precompiled headers, against bare NVRTC",
     kiln::bench::workers_cold8},
    {"workers_cold8_kept_pch", "the same with precompiled headers that an earlier process has made",
     kiln::bench::workers_cold8_kept_pch},
    {"cccl_cold18", "18 algorithms of CCCL's that nobody has compiled, against the bare library",
     kiln::bench::cccl_cold18},
    {"cccl_cold18_kept_pch", "the same with precompiled headers that an earlier process has made",
     kiln::bench::cccl_cold18_kept_pch},
    {"cccl_four_targets", "those 18 for four targets at once, against one target", kiln::bench::cccl_four_targets},
    {"cccl_second_process", "those 72 in a new process that finds them on disk, against the compiles",
     kiln::bench::cccl_second_process},
    {"request_18", "a request of 18 units that a new engine has not seen, of the same again, and of 10,000",
     kiln::bench::request_18},
    {"get_handle", "a kernel that is ready, by its handle, against an acquire load", kiln::bench::get_handle},
    {"get_recipe", "a unit that is ready, found by itself, against an unordered_map with the same key",
     kiln::bench::get_recipe},
    {"bundle_open", "opening a signed bundle of 2,000 artifacts in a new process, against one of 20",
     kiln::bench::bundle_open},
    {"bundle_get", "an artifact out of a bundle, against unpacking the same bytes and checking nothing",
     kiln::bench::bundle_get},
#ifdef KILN_BENCH_HTTP
    {"remote_hit", "a hit in a remote store, against the bare GETs of its two bodies, and against compiling it",
     kiln::bench::remote_hit},
#endif
};

enum Exit { kGood = 0, kOverTheLimit = 1, kUsage = 2, kCouldNotRun = 3 };

int usage(const char* problem) {
  std::fprintf(stderr, "kiln-bench: %s\nusage: kiln-bench --list | NAME… [--quick] [--json] | all [--quick] [--json]\n",
               problem);
  return kUsage;
}

int list() {
  for (const Benchmark& benchmark : kBenchmarks) std::printf("%-22s %s\n", benchmark.name, benchmark.meaning);
  return kGood;
}

// Settings of whoever runs it would be measured too; what finds compilers stays.
void forget_settings() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (text.starts_with("KILN_")) names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) {
    if (name != "KILN_CCCL" && name != "KILN_NVRTC" && name != "KILN_WORKER") unsetenv(name.c_str());
  }
}

int run(const Benchmark& benchmark, bool json) {
  const auto outcomes = benchmark.run();
  if (!outcomes) {
    std::fprintf(stderr, "kiln-bench: %s: %s\n%s", benchmark.name, outcomes.error().message.c_str(),
                 outcomes.error().log.c_str());
    return kCouldNotRun;
  }
  int worst = kGood;
  for (const auto& outcome : *outcomes) {
    if (json) std::printf("%s\n", as_json(outcome).c_str());
    if (!outcome.settled) {
      std::fprintf(stderr, "kiln-bench: %s: the spread did not become small: %.1f %% after %zu rounds\n",
                   outcome.name.c_str(), 100 * outcome.spread, outcome.n);
    }
    if (!outcome.within()) worst = kOverTheLimit;
  }
  if (!json) std::printf("%s", as_table(*outcomes).c_str());
  std::fflush(stdout);
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false;
  std::vector<const Benchmark*> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--list") return list();
    if (argument == "--json") {
      json = true;
      continue;
    }
    if (argument == "--quick") {
      kiln::bench::hurry();
      continue;
    }
    const std::size_t before = wanted.size();
    for (const Benchmark& benchmark : kBenchmarks) {
      if (argument == benchmark.name || argument == "all") wanted.push_back(&benchmark);
    }
    if (wanted.size() == before) return usage(("there is no benchmark '" + std::string(argument) + "'").c_str());
  }
  if (wanted.empty()) return usage("which benchmark?");
  forget_settings();
  int worst = kGood;
  for (const Benchmark* benchmark : wanted) worst = std::max(worst, run(*benchmark, json));
  return worst;
}
