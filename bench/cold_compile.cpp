// The overhead of the full compile path: the search, the claim, the worker process that tracks inputs, the dependency
// set and the entry. Each round has an empty cache, except for the digests of the toolkit's files, which the first
// compile on a machine computes and which stay between rounds.
#include <filesystem>
#include <string>
#include <vector>

#include <kiln/session.hpp>

#include "base/error.hpp"
#include "base/visible_text.hpp"
#include "bench/benchmarks.hpp"
#include "bench/support/bare_nvrtc.hpp"
#include "bench/support/child_process.hpp"
#include "bench/support/scratch.hpp"
#include "bench/support/units.hpp"
#include "session/components.hpp"

namespace kiln::bench {
namespace {

namespace fs = std::filesystem;

SessionOptions options_for(const std::string& cache) {
  return {.settings = {{"cache.dir", cache}}, .locked = {"cache.dir"}, .on_event = {}};
}

class Resolution {
 public:
  explicit Resolution(const Unit& unit) : unit_(unit) {}

  Result<double> compile() {
    const std::string cache = scratch_ / std::to_string(round_++);
    // If the digest file is in the cache; else it is in the runtime directory, which all rounds share.
    if (const std::string memory = "/v1/digests"; round_ > 1 && fs::exists(scratch_ / "0" + memory)) {
      fs::create_directories(cache + "/v1");
      fs::copy_file(scratch_ / "0" + memory, cache + memory);
    }
    bool compiled = false;
    SessionOptions options = options_for(cache);
    options.on_event = [&](const Event& event) {
      if (event.kind == Event::Kind::ConfigWarning) print_warning(event.message);
      compiled |= event.kind == Event::Kind::Published;
    };
    const std::int64_t start = now_ns();
    auto session = Session::open(options);
    if (!session) return std::move(session).error();
    const auto artifact = session->artifact(unit_, Target{kArchitecture, Form::Cubin});
    const double time = static_cast<double>(now_ns() - start) / 1e6;
    if (!artifact) return artifact.error();
    if (!compiled) return make_error(Code::Internal, "the unit was not compiled and stored: nothing was measured");
    return time;
  }

 private:
  const Scratch scratch_;
  const Unit unit_;
  int round_ = 0;
};

}  // namespace

Result<Outcomes> cold_compile() {
  const auto roots = toolkit_include_roots();
  if (!roots) return roots.error();
  const Unit unit = large_unit(*roots);
  const Scratch scratch;
  use_own_directories(scratch);
  const EventEmitter no_events;
  Components components(Config::load(options_for(scratch / "cache"), no_events), no_events);
  const auto recipe = components.recipe(unit, Target{kArchitecture, Form::Cubin}, {});
  if (!recipe) return recipe.error();
  const auto nvrtc = NvrtcLibrary::open(recipe->compiler.path);
  if (!nvrtc) return nvrtc.error();

  Resolution resolver(unit);
  Plan plan;
  plan.unit = "ms";
  plan.ours = [&] { return resolver.compile(); };
  plan.warm_up = 1;
  plan.min_rounds = 8;
  plan.max_rounds = 10;
  plan.max_seconds = 60;

  std::vector<std::string> alone{beside_this_program("kiln-bench-nvrtc"), recipe->compiler.path};
  alone.insert(alone.end(), roots->begin(), roots->end());
  Outcomes outcomes;
  // A cold compile is the first of its process, so it is compared with a first compile.
  plan.name = "cold_compile";
  plan.limit = 1.05;
  plan.theirs = [&]() -> Result<double> {
    auto times = run_child(alone);
    if (!times) return std::move(times).error();
    return times->from_main_us / 1000;
  };
  if (Status added = add(outcomes, compare(plan)); !added) return std::move(added).error();

  // In a process that has compiled before, NVRTC reuses 190 MB of memory and has its builtins loaded. That saves about
  // 0.1 s of CPU time, which a worker that serves one compile cannot save.
  plan.name = "cold_compile_initialised";
  plan.limit = 1.25;
  plan.theirs = [&]() -> Result<double> {
    const std::int64_t start = now_ns();
    const auto cubin = compile_with_bare_nvrtc(**nvrtc, unit);
    if (!cubin) return cubin.error();
    return static_cast<double>(now_ns() - start) / 1e6;
  };
  if (Status added = add(outcomes, compare(plan)); !added) return std::move(added).error();
  return outcomes;
}

}  // namespace kiln::bench
