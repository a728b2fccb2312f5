// What kiln makes of NVIDIA's algorithms: the 18 founding specs that nobody has compiled, in a new process, against the
// library that compiles them one after the other; and the same again in a process that finds them all.
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <kiln/cccl.hpp>

#include "base/error.hpp"
#include "bench/benchmarks.hpp"
#include "bench/child.hpp"
#include "bench/scratch.hpp"
#include "session/toolbox.hpp"

namespace kiln::bench {
namespace {

namespace fs = std::filesystem;

// A round takes more than a minute.
constexpr std::size_t kRounds = 3;
// Three sets of headers serve all 18.
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

class Founding {
 public:
  Status prepare() {
    use_own_folders(scratch_);
    const Observer nobody;
    Toolbox toolbox(Config::load({.settings = {{"cache.dir", cache_}}, .locked = {"cache.dir"}}, nobody), nobody);
    const auto recipe = toolbox.recipe(cccl::founding().front(), Target::sm(80));
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

  /// `before`: what an earlier process has left behind; with nothing of it not even the digests of the toolkit's files.
  Result<double> kiln(Before before, const std::vector<std::string>& targets) {
    if (Status cleared = clear(before); !cleared) return std::move(cleared).error();
    std::vector<std::string> what{"kiln", cache_};
    what.insert(what.end(), targets.begin(), targets.end());
    const auto said = run(what);
    if (!said) return said.error();
    const std::size_t all = cccl::founding().size() * targets.size();
    const std::size_t compiled = before == Before::Everything ? 0 : all;
    const int kept = before == Before::Nothing ? kSets * static_cast<int>(targets.size()) : 0;
    if (said->compiled != compiled || said->found != all - compiled || said->kept != kept || said->wanting != 0 ||
        said->nvrtc != 0) {
      return failure(Code::Internal, "not what was to be measured: " + said->text());
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
             " precompiled headers made and " + std::to_string(used) + " times used, " + std::to_string(wanting) +
             " of them or of workers failed, NVRTC " + (nvrtc != 0 ? "open" : "not open");
    }
  };

  // In milliseconds, from the start of the process to the last of its blobs.
  Result<Said> run(const std::vector<std::string>& what) {
    std::vector<std::string> arguments{beside_this_program("kiln-bench-cccl"), std::to_string(now_ns())};
    arguments.insert(arguments.end(), what.begin(), what.end());
    const auto times = run_child(arguments);
    if (!times) return times.error();
    Said said;
    said.ms = times->from_main_us / 1000;
    if (std::sscanf(times->said.c_str(), "%zu %zu %zu %d %d %d %d", &said.kernels, &said.compiled, &said.found,
                    &said.kept, &said.used, &said.wanting, &said.nvrtc) != 7) {
      return failure(Code::Internal, "kiln-bench-cccl said nothing that makes sense");
    }
    std::fprintf(stderr, "kiln-bench: cccl: %.2f s, %s\n", said.ms / 1000, said.text().c_str());
    return said;
  }

  Status clear(Before before) {
    std::error_code error;
    if (before == Before::Nothing) {
      for (const std::string& folder : {cache_, scratch_ / "XDG_RUNTIME_DIR/kiln"}) fs::remove_all(folder, error);
    }
    if (before == Before::Headers) {
      for (const char* part : {"entries", "hints", "history"}) fs::remove_all(cache_ + "/v1/" + part, error);
    }
    if (error) return failure(Code::Io, "the cache cannot be cleared: " + error.message());
    return {};
  }

  // Blobs are not reproducible to the bit; tests compare their code. Here it is enough that no side leaves out any.
  Status expect_kernels(std::size_t targets, std::size_t kernels) {
    std::size_t& expected = targets == 1 ? kernels_of_one_ : kernels_of_four_;
    if (expected == 0) expected = kernels;
    if (expected != kernels) return failure(Code::Internal, "two sides made different kernels");
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

// In the first round the headers that are kept are those of the side before; in the others, of an earlier round.
Result<Outcomes> cccl_cold18() {
  Founding founding;
  if (Status ready = founding.prepare(); !ready) return std::move(ready).error();
  const auto times =
      take_turns({[&] { return founding.bare(); }, [&] { return founding.kiln(Before::Nothing, one_target()); },
                  [&] { return founding.kiln(Before::Headers, one_target()); }},
                 kRounds);
  if (!times) return times.error();
  return Outcomes{outcome_of(plan_of("cccl_cold18", 1 / 3.0), (*times)[1], (*times)[0]),
                  outcome_of(plan_of("cccl_cold18_kept_pch", 1 / 4.4), (*times)[2], (*times)[0])};
}

Result<Outcomes> cccl_four_targets() {
  constexpr std::size_t kHits = 8;  // of each round, each compared with the compiles before it
  Founding founding;
  if (Status ready = founding.prepare(); !ready) return std::move(ready).error();
  std::vector<double> hits;
  std::vector<double> compiles;
  const auto four = [&]() -> Result<double> {
    const auto cold = founding.kiln(Before::Nothing, four_targets());
    for (std::size_t i = 0; cold.ok() && i < kHits; ++i) {
      const auto hit = founding.kiln(Before::Everything, four_targets());
      if (!hit) return hit.error();
      hits.push_back(*hit);
      compiles.push_back(*cold);
    }
    return cold;
  };
  const auto times = take_turns({[&] { return founding.kiln(Before::Nothing, one_target()); }, four}, kRounds);
  if (!times) return times.error();
  return Outcomes{outcome_of(plan_of("cccl_four_targets", 4), (*times)[1], (*times)[0]),
                  outcome_of(plan_of("cccl_second_process", 0.005), hits, compiles)};
}

}  // namespace kiln::bench
