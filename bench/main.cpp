// SPDX-License-Identifier: Apache-2.0
// kiln-bench: measures kiln's performance promises, each number next to its baseline, and fails if a promise is broken.
// docs/reference/benchmarks.md explains the output.
#include <stdlib.h>
#include <unistd.h>

#include <charconv>
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
    {"new_process_hit", "a hit in a new process, against a program that only hashes, stats, reads and checks",
     kiln::bench::new_process_hit},
    {"cold_compile", "a miss of a CUB kernel, compiled and stored, against bare NVRTC", kiln::bench::cold_compile},
    {"worker_overhead", "a CUB kernel compiled by a warm worker, against bare NVRTC in a warm process",
     kiln::bench::worker_overhead},
    {"workers_cold8",
     "eight CUB units in workers, without, with new and with cached precompiled headers, "
     "against bare NVRTC",
     kiln::bench::workers_cold8},
    {"cccl_cold18",
     "18 CCCL algorithms that are not cached, with new and with cached precompiled headers, "
     "against the bare library",
     kiln::bench::cccl_cold18},
    {"cccl_first18", "the same with new ones alone, where a process leaves none (bench/container)",
     kiln::bench::cccl_first18},
    {"cccl_four_targets",
     "those 18 for four targets at once, against one target; and all 72 in a second process, "
     "against compiling",
     kiln::bench::cccl_four_targets},
    {"request_18", "a request of 18 units that are new to the engine, of the same units again, and of 10,000",
     kiln::bench::request_18},
    {"get_handle", "a ready kernel by its handle, against an acquire load", kiln::bench::get_handle},
    {"get_recipe", "a ready unit by its identity, against an unordered_map with the same key", kiln::bench::get_recipe},
    {"bundle_open", "opening a signed bundle of 2,000 artifacts in a new process, against one of 20",
     kiln::bench::bundle_open},
    {"bundle_get", "an artifact from a bundle, against unpacking the same bytes without checks",
     kiln::bench::bundle_get},
    {"remote_bytes",
     "bytes of entries that a host fetches, packed, against the entries: two units, and eight CUB units",
     kiln::bench::remote_bytes},
#ifdef KILN_BENCH_HTTP
    {"remote_hit",
     "a hit in a remote store, against bare GETs of its two objects, packed and not packed, and against compiling it",
     kiln::bench::remote_hit},
#endif
#ifdef KILN_BENCH_WORKLOADS
    {"workload_sjoin",
     "3 units and 12 algorithms of a spatial join: cold, second process, bundle, fleet, against bare compilers",
     kiln::bench::workload_sjoin},
    {"workload_all", "all 14 units and 18 algorithms, same cases, and against reading the same bytes",
     kiln::bench::workload_all},
    {"workload_31", "a library of 31 kernels, same cases", kiln::bench::workload_31},
#endif
};

enum Exit { kGood = 0, kOverTheLimit = 1, kUsage = 2, kCouldNotRun = 3 };

int usage(const char* problem) {
  std::fprintf(stderr, "kiln-bench: %s\nusage: kiln-bench --list | NAME… | all  [--quick] [--rounds MOST] [--json]\n",
               problem);
  return kUsage;
}

int list() {
  for (const Benchmark& benchmark : kBenchmarks) std::printf("%-22s %s\n", benchmark.name, benchmark.meaning);
  return kGood;
}

// Removes the user's settings, which would affect the measurement; the variables that locate compilers stay.
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

struct Options {
  bool json = false;
  std::string said;  ///< options that affect the measurement, as given
};

int run(const Benchmark& benchmark, const Options& options) {
  const auto outcomes = benchmark.run();
  if (!outcomes) {
    std::fprintf(stderr, "kiln-bench: %s: %s\n%s", benchmark.name, outcomes.error().message.c_str(),
                 outcomes.error().log.c_str());
    return kCouldNotRun;
  }
  int worst = kGood;
  for (const auto& outcome : *outcomes) {
    if (options.json) {
      const std::string command = std::string("kiln-bench ") + benchmark.name + options.said;
      std::printf("%s\n", as_json(outcome, {benchmark.name, benchmark.meaning, command}).c_str());
    }
    if (!outcome.settled) {
      std::fprintf(stderr, "kiln-bench: %s: the spread is still large: %.1f %% after %zu rounds\n",
                   outcome.name.c_str(), 100 * outcome.spread, outcome.n);
    }
    if (!outcome.within()) worst = kOverTheLimit;
  }
  if (!options.json) std::printf("%s", as_table(*outcomes).c_str());
  std::fflush(stdout);
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::vector<const Benchmark*> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--list") return list();
    if (argument == "--json") {
      options.json = true;
      continue;
    }
    if (argument == "--rounds") {
      const std::string_view text = ++i < argc ? argv[i] : "";
      std::size_t maximum = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), maximum).ptr != text.data() + text.size() ||
          maximum == 0) {
        return usage("--rounds needs a number");
      }
      kiln::bench::at_most(maximum);
      options.said += " --rounds " + std::string(text);
      continue;
    }
    if (argument == "--quick") {
      kiln::bench::hurry();
      options.said += " --quick";
      continue;
    }
    const std::size_t before = wanted.size();
    for (const Benchmark& benchmark : kBenchmarks) {
      if (argument == benchmark.name || argument == "all") wanted.push_back(&benchmark);
    }
    if (wanted.size() == before) return usage(("unknown benchmark '" + std::string(argument) + "'").c_str());
  }
  if (wanted.empty()) return usage("no benchmark given");
  forget_settings();
  int worst = kGood;
  for (const Benchmark* benchmark : wanted) worst = std::max(worst, run(*benchmark, options));
  return worst;
}
