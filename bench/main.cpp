// kiln-bench: measures what kiln promises, each figure beside what it is compared with, and fails where a promise is
// broken. docs/benchmarks.md says how to read it.
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
    {"new_process_hit", "a new process's hit, against a program that only hashes, stats, reads and checks",
     kiln::bench::new_process_hit},
    {"cold_compile", "a miss of a kernel on CUB, compiled and stored, against bare NVRTC", kiln::bench::cold_compile},
    {"worker_overhead", "a kernel on CUB through a worker that is warm, against bare NVRTC that is as warm",
     kiln::bench::worker_overhead},
    {"workers_cold8",
     "eight units on CUB in workers, without precompiled headers, with new and with kept ones, "
     "against bare NVRTC",
     kiln::bench::workers_cold8},
    {"cccl_cold18",
     "18 algorithms of CCCL's that nobody has compiled, with new and with kept precompiled headers, "
     "against the bare library",
     kiln::bench::cccl_cold18},
    {"cccl_four_targets",
     "those 18 for four targets at once, against one target; and these 72 in a second process, "
     "against the compiles",
     kiln::bench::cccl_four_targets},
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
#ifdef KILN_BENCH_WORKLOADS
    {"workload_sjoin", "a spatial join's 3 units and 12 algorithms: cold, second process, bundle, fleet, against bare",
     kiln::bench::workload_sjoin},
    {"workload_all", "all 14 units and 18 algorithms, likewise, and against reading the same bytes",
     kiln::bench::workload_all},
    {"workload_31", "a library of 31 kernels, likewise", kiln::bench::workload_31},
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

struct Options {
  bool json = false;
  std::string said;  ///< those that change what is measured, as they were given
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
      std::fprintf(stderr, "kiln-bench: %s: the spread did not become small: %.1f %% after %zu rounds\n",
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
      std::size_t most = 0;
      if (std::from_chars(text.data(), text.data() + text.size(), most).ptr != text.data() + text.size() || most == 0) {
        return usage("--rounds wants a number");
      }
      kiln::bench::at_most(most);
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
    if (wanted.size() == before) return usage(("there is no benchmark '" + std::string(argument) + "'").c_str());
  }
  if (wanted.empty()) return usage("which benchmark?");
  forget_settings();
  int worst = kGood;
  for (const Benchmark* benchmark : wanted) worst = std::max(worst, run(*benchmark, options));
  return worst;
}
