// SPDX-License-Identifier: Apache-2.0
// The overhead of the full compile path: the search, the claim, the worker process that tracks inputs, the dependency
// set and the entry. No round finds an entry. On a used host the digests of the toolkit's files and the results of the
// compiler's checks, which the first compile on a machine computes, stay between rounds; on a new host nothing does.
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

// A used host has compiled another unit before: it has the digests of the toolkit's files and the results of the checks
// of its compiler. A new host has nothing.
enum class Host { Used, New };

class Resolution {
 public:
  Resolution(const Unit& unit, Host host) : unit_(unit), host_(host) {}

  Result<double> compile() {
    const std::string cache = scratch_ / std::to_string(round_++);
    if (host_ == Host::New) use_own_directories(scratch_ / ("host" + std::to_string(round_)));
    if (host_ == Host::Used && round_ == 1) {
      if (auto first = timed_compile(cache); !first) return first;
    }
    if (host_ == Host::Used) return timed_compile(copy_of_host(cache));
    return timed_compile(cache);
  }

 private:
  // Returns a cache without entries that has what the host remembers. The digests are in the runtime directory, which
  // all rounds share, or in the cache.
  std::string copy_of_host(const std::string& cache) const {
    const std::string used = scratch_ / "0/v1/";
    const std::string copy = cache + "-copy";
    fs::create_directories(copy + "/v1");
    for (const char* name : {"digests", "checks"}) {
      if (fs::exists(used + name)) fs::copy(used + name, copy + "/v1/" + name, fs::copy_options::recursive);
    }
    return copy;
  }

  Result<double> timed_compile(const std::string& cache) const {
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

  const Scratch scratch_;
  const Unit unit_;
  const Host host_;
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

  Plan plan;
  plan.unit = "ms";
  plan.warm_up = 1;
  plan.min_rounds = 8;
  plan.max_rounds = 10;
  plan.max_seconds = 60;

  // A cold compile is the first of its process, so it is compared with a first compile.
  const std::vector<std::string> alone_small{beside_this_program("kiln-bench-nvrtc"), recipe->compiler.path};
  std::vector<std::string> alone = alone_small;
  alone.insert(alone.end(), roots->begin(), roots->end());
  struct Case {
    const char* name;
    Unit unit;
    Host host;
    double limit;
    const std::vector<std::string>& alone;
  };
  const Case cases[] = {{"cold_compile", unit, Host::Used, 1.05, alone},
                        {"cold_compile_new_host", unit, Host::New, 1.10, alone},
                        {"cold_compile_small", small_unit(), Host::Used, 1.05, alone_small},
                        {"cold_compile_small_new_host", small_unit(), Host::New, 1.10, alone_small}};
  Outcomes outcomes;
  for (const Case& one : cases) {
    use_own_directories(scratch);
    Resolution resolver(one.unit, one.host);
    plan.name = one.name;
    plan.limit = one.limit;
    plan.ours = [&] { return resolver.compile(); };
    plan.theirs = [&]() -> Result<double> {
      auto times = run_child(one.alone);
      if (!times) return std::move(times).error();
      return times->from_main_us / 1000;
    };
    if (Status added = add(outcomes, compare(plan)); !added) return std::move(added).error();
  }

  // In a process that has compiled before, NVRTC reuses 190 MB of memory and has its builtins loaded. That saves about
  // 0.1 s of CPU time, which a worker that serves one compile cannot save.
  use_own_directories(scratch);
  Resolution resolver(unit, Host::Used);
  plan.ours = [&] { return resolver.compile(); };
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
