// SPDX-License-Identifier: Apache-2.0
// The benefit of workers: eight uncached CUB units in a new process. NVRTC's front end holds one lock per process, so
// threads hardly help. Processes help, and headers that are parsed once help more. The cache is empty in each round,
// except for the digests of the toolkit's files, which a machine computes once, and for precompiled headers where the
// name of the result contains `kept`.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "bench/benchmarks.hpp"
#include "bench/support/child_process.hpp"
#include "bench/support/scratch.hpp"
#include "bench/support/units.hpp"
#include "session/components.hpp"

namespace kiln::bench {
namespace {

namespace fs = std::filesystem;

enum class Headers { None, Made, Kept };

// A round takes most of a minute.
constexpr std::size_t kColdRounds = 5;

class Eight {
 public:
  Status prepare() {
    auto roots = toolkit_include_roots();
    if (!roots) return std::move(roots).error();
    roots_ = std::move(*roots);
    use_own_directories(scratch_);
    const EventEmitter no_events;
    Components components(Config::load({}, no_events), no_events);
    const auto compiler = components.recipe(large_unit(roots_), Target{kArchitecture, Form::Cubin}, {});
    if (!compiler) return compiler.error();
    nvrtc_ = compiler->compiler.path;
    // The starting state of the rounds. This creates the precompiled headers of all `kept` results, with randomization.
    if (auto first = run("plain", {"kiln", first_, "default"}, Headers::Made); !first) return std::move(first).error();
    return {};
  }

  Result<double> bare(const char* who) { return run("plain", {who, nvrtc_}, Headers::None); }

  Result<double> kiln(const char* how, Headers headers) {
    const std::string cache = scratch_ / "cache";
    fs::create_directories(cache + "/v1");
    // If the digest file is in the cache; else it is in the runtime directory, which all rounds share.
    if (fs::exists(first_ + kDigests)) fs::copy_file(first_ + kDigests, cache + kDigests);
    if (headers == Headers::Kept) fs::rename(first_ + kPchCache, cache + kPchCache);
    auto time = run(how, {"kiln", cache, headers == Headers::None ? "off" : "default"}, headers);
    if (headers == Headers::Kept) fs::rename(cache + kPchCache, first_ + kPchCache);
    // A file of the toolkit may have been touched (a second link to it is enough); its digest is computed only once
    // too.
    if (fs::exists(cache + kDigests)) {
      fs::copy_file(cache + kDigests, first_ + kDigests, fs::copy_options::overwrite_existing);
    }
    fs::remove_all(cache);
    return time;
  }

 private:
  static constexpr char kDigests[] = "/v1/digests";
  static constexpr char kPchCache[] = "/v1/pch";

  // Returns the time in milliseconds from the start of the process to its last cubin.
  Result<double> run(const char* how, const std::vector<std::string>& what, Headers headers) {
    std::vector<std::string> arguments{beside_this_program("kiln-bench-eight"), how, std::to_string(now_ns())};
    arguments.insert(arguments.end(), what.begin(), what.end());
    arguments.insert(arguments.end(), roots_.begin(), roots_.end());
    auto times = run_child(arguments);
    if (!times) return std::move(times).error();
    char digest[17] = "";
    std::size_t bytes = 0;
    int kept = 0;
    int failed = 0;
    if (std::sscanf(times->said.c_str(), "%16s %zu %d %d", digest, &bytes, &kept, &failed) != 4) {
      return make_error(Code::Internal, "unexpected output of kiln-bench-eight");
    }
    if (kept != (headers == Headers::Made ? 1 : 0) || failed != 0) {
      return make_error(Code::Internal, "unexpected run: " + std::to_string(kept) +
                                            " precompiled headers were created, and " + std::to_string(failed) +
                                            " of them or of the workers failed");
    }
    // With a precompiled header NVRTC lists symbols in another order, around the same code.
    if (headers == Headers::None && digest_.empty()) digest_ = digest;
    if (bytes_ == 0) bytes_ = bytes;
    if (bytes != bytes_ || (headers == Headers::None && digest_ != digest)) {
      return make_error(Code::Internal, "the two sides compiled different cubins");
    }
    return times->from_main_us / 1000;
  }

  const Scratch scratch_;
  const std::string first_ = scratch_ / "first";
  std::vector<std::string> roots_;
  std::string nvrtc_;
  std::string digest_;
  std::size_t bytes_ = 0;
};

// A promise is a speedup over eight threads; the serial side may not be faster than that.
struct Figure {
  const char* name;
  const char* how;
  Headers headers;
  double times_faster;
};

Result<Outcomes> measure(const std::vector<Figure>& figures) {
  Eight eight;
  if (Status ready = eight.prepare(); !ready) return std::move(ready).error();
  std::vector<Plan::Side> sides{[&] { return eight.bare("serial"); }, [&] { return eight.bare("threads"); }};
  for (const Figure& figure : figures) {
    sides.push_back([&] { return eight.kiln(figure.how, figure.headers); });
  }
  const auto times = take_turns(sides, kColdRounds);
  if (!times) return times.error();
  Outcomes outcomes;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    Plan plan;
    plan.unit = "ms";
    plan.limit = 1 / figures[i].times_faster;
    plan.small_spread = 0.05;
    plan.name = figures[i].name;
    outcomes.push_back(outcome_of(plan, (*times)[i + 2], (*times)[1]));
    plan.name += "_serial";
    outcomes.push_back(outcome_of(plan, (*times)[i + 2], (*times)[0]));
  }
  return outcomes;
}

}  // namespace

Result<Outcomes> workers_cold8() {
  return measure({
      {"workers_cold8", "plain", Headers::None, 1.8},
      {"workers_cold8_pch", "plain", Headers::Made, 3},
      {"workers_cold8_pch_refused", "no-personality", Headers::Made, 3},
      {"workers_cold8_pch_no_aslr", "no-aslr", Headers::Made, 3},
      {"workers_cold8_kept_pch", "plain", Headers::Kept, 5},
      {"workers_cold8_kept_pch_refused", "no-personality", Headers::Kept, 5},
      {"workers_cold8_kept_pch_no_aslr", "no-aslr", Headers::Kept, 5},
  });
}

}  // namespace kiln::bench
