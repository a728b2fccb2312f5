// SPDX-License-Identifier: Apache-2.0
// The 18 predefined CCCL specs: uncached in a new process, against the library that compiles them one after the other;
// and again in a process that finds all of them cached.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <kiln/cccl.hpp>

#include "base/error.hpp"
#include "bench/benchmarks.hpp"
#include "bench/support/child_process.hpp"
#include "bench/support/scratch.hpp"
#include "session/components.hpp"

namespace kiln::bench {
namespace {

namespace fs = std::filesystem;

// A round takes more than a minute.
constexpr std::size_t kRounds = 3;
// Three header sets serve all 18 specs.
constexpr int kSets = 3;

const std::vector<std::string>& one_target() {
  static const std::vector<std::string> kOne{"sm_80"};
  return kOne;
}
const std::vector<std::string>& four_targets() {
  static const std::vector<std::string> kFour{"sm_80", "sm_90", "sm_100", "sm_120"};
  return kFour;
}

enum class Before { Nothing, Headers, Everything };

class Predefined {
 public:
  Status prepare() {
    use_own_directories(scratch_);
    const EventEmitter no_events;
    Components components(Config::load({.settings = {{"cache.dir", cache_}}, .locked = {"cache.dir"}}, no_events),
                          no_events);
    const auto recipe = components.recipe(cccl::predefined_specs().front(), Target::sm(80), {});
    if (!recipe) return recipe.error();
    const CompilerIdentity& found = recipe->compiler;
    bare_ = {"bare", found.path, found.roots[0].path, found.roots[1].path};
    bare_.insert(bare_.end(), found.libraries.begin(), found.libraries.end());
    return {};
  }

  Result<double> bare() {
    const auto said = run(bare_);
    if (!said) return said.error();
    if (Status same = expect_kernels(1, said->kernels); !same) return std::move(same).error();
    return said->ms;
  }

  /// `before`: the files that an earlier process left. Nothing means not even the digests of the toolkit's files.
  Result<double> kiln(Before before, const std::vector<std::string>& targets) {
    if (Status cleared = clear(before); !cleared) return std::move(cleared).error();
    std::vector<std::string> what{"kiln", cache_};
    what.insert(what.end(), targets.begin(), targets.end());
    const auto said = run(what);
    if (!said) return said.error();
    const std::size_t all = cccl::predefined_specs().size() * targets.size();
    const std::size_t compiled = before == Before::Everything ? 0 : all;
    const int kept = before == Before::Nothing ? kSets * static_cast<int>(targets.size()) : 0;
    if (said->compiled != compiled || said->found != all - compiled || said->kept != kept || said->wanting != 0 ||
        said->nvrtc != 0) {
      return make_error(Code::Internal, "unexpected run: " + said->text());
    }
    if (Status same = expect_kernels(targets.size(), said->kernels); !same) return std::move(same).error();
    return said->ms;
  }

 private:
  struct Said {
    double ms = 0;
    std::size_t kernels = 0;
    std::size_t compiled = 0;
    std::size_t found = 0;
    int kept = 0;
    int used = 0;
    int wanting = 0;
    int nvrtc = 0;

    std::string text() const {
      return std::to_string(compiled) + " compiled, " + std::to_string(found) + " found, " + std::to_string(kept) +
             " precompiled headers created and used " + std::to_string(used) + " times, " + std::to_string(wanting) +
             " of them or of the workers failed, NVRTC " + (nvrtc != 0 ? "open" : "not open");
    }
  };

  // Returns the time in milliseconds from the start of the process to its last blob.
  Result<Said> run(const std::vector<std::string>& what) {
    std::vector<std::string> arguments{beside_this_program("kiln-bench-cccl"), std::to_string(now_ns())};
    arguments.insert(arguments.end(), what.begin(), what.end());
    const auto times = run_child(arguments);
    if (!times) return times.error();
    Said said;
    said.ms = times->from_main_us / 1000;
    if (std::sscanf(times->said.c_str(), "%zu %zu %zu %d %d %d %d", &said.kernels, &said.compiled, &said.found,
                    &said.kept, &said.used, &said.wanting, &said.nvrtc) != 7) {
      return make_error(Code::Internal, "unexpected output of kiln-bench-cccl");
    }
    std::fprintf(stderr, "kiln-bench: cccl: %.2f s, %s\n", said.ms / 1000, said.text().c_str());
    return said;
  }

  Status clear(Before before) {
    std::error_code error;
    if (before == Before::Nothing) {
      for (const std::string& directory : {cache_, scratch_ / "XDG_RUNTIME_DIR/kiln"}) fs::remove_all(directory, error);
    }
    if (before == Before::Headers) {
      for (const char* part : {"entries", "hints", "history"}) fs::remove_all(cache_ + "/v1/" + part, error);
    }
    if (error) return make_error(Code::Io, "cannot clear the cache: " + error.message());
    return {};
  }

  // Blobs are not reproducible bit by bit; tests compare their code. Here it is enough that both sides compile all
  // kernels.
  Status expect_kernels(std::size_t targets, std::size_t kernels) {
    std::size_t& expected = targets == 1 ? kernels_of_one_ : kernels_of_four_;
    if (expected == 0) expected = kernels;
    if (expected != kernels) return make_error(Code::Internal, "the two sides compiled different kernels");
    return {};
  }

  const Scratch scratch_;
  const std::string cache_ = scratch_ / "cache";
  std::vector<std::string> bare_;
  std::size_t kernels_of_one_ = 0;
  std::size_t kernels_of_four_ = 0;
};

Plan plan_of(const char* name, double limit) {
  Plan plan;
  plan.name = name;
  plan.unit = "ms";
  plan.limit = limit;
  plan.small_spread = 0.05;
  return plan;
}

}  // namespace

// In the first round the cached headers are those of the previous side; in later rounds, of an earlier round.
Result<Outcomes> cccl_cold18() {
  Predefined predefined;
  if (Status ready = predefined.prepare(); !ready) return std::move(ready).error();
  const auto times =
      take_turns({[&] { return predefined.bare(); }, [&] { return predefined.kiln(Before::Nothing, one_target()); },
                  [&] { return predefined.kiln(Before::Headers, one_target()); }},
                 kRounds);
  if (!times) return times.error();
  return Outcomes{outcome_of(plan_of("cccl_cold18", 1 / 3.5), (*times)[1], (*times)[0]),
                  outcome_of(plan_of("cccl_cold18_kept_pch", 1 / 4.5), (*times)[2], (*times)[0])};
}

Result<Outcomes> cccl_first18() {
  Predefined predefined;
  if (Status ready = predefined.prepare(); !ready) return std::move(ready).error();
  const auto times = take_turns(
      {[&] { return predefined.bare(); }, [&] { return predefined.kiln(Before::Nothing, one_target()); }}, kRounds);
  if (!times) return times.error();
  return Outcomes{outcome_of(plan_of("cccl_first18", 1 / 3.5), (*times)[1], (*times)[0])};
}

Result<Outcomes> cccl_four_targets() {
  constexpr std::size_t kHits = 8;  // per round, each compared with the compiles before it
  Predefined predefined;
  if (Status ready = predefined.prepare(); !ready) return std::move(ready).error();
  std::vector<double> hits;
  std::vector<double> compiles;
  const auto four = [&]() -> Result<double> {
    const auto cold = predefined.kiln(Before::Nothing, four_targets());
    for (std::size_t i = 0; cold.has_value() && i < kHits; ++i) {
      const auto hit = predefined.kiln(Before::Everything, four_targets());
      if (!hit) return hit.error();
      hits.push_back(*hit);
      compiles.push_back(*cold);
    }
    return cold;
  };
  const auto times = take_turns({[&] { return predefined.kiln(Before::Nothing, one_target()); }, four}, kRounds);
  if (!times) return times.error();
  return Outcomes{outcome_of(plan_of("cccl_four_targets", 4), (*times)[1], (*times)[0]),
                  outcome_of(plan_of("cccl_second_process", 0.005), hits, compiles)};
}

}  // namespace kiln::bench
