// What the first hit of a new process costs: nothing of kiln is warm in it but the files.
#include <fcntl.h>
#include <stdlib.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "bench/benchmarks.hpp"
#include "bench/child.hpp"
#include "bench/scratch.hpp"
#include "bench/units.hpp"
#include "session/toolbox.hpp"
#include "store/cache_directory.hpp"

namespace kiln::bench {
namespace {

// Fills the cache, and returns what the floor program has to look at: the entry and the list of headers.
Result<std::vector<std::string>> prepare(const Unit& unit, const std::string& cache, const std::string& list) {
  const Observer nobody;
  Toolbox toolbox(Config::load({.settings = {{"cache.dir", cache}}, .locked = {"cache.dir"}}, nobody), nobody);
  const Target target{kArchitecture, Form::Cubin};
  const auto recipe = toolbox.recipe(unit, target);
  if (!recipe) return recipe.error();
  const auto answer = toolbox.get(unit, target);
  if (!answer) return answer.error();
  std::vector<std::string> looked_at{cache + "/v1/" + ShardedName("entries", answer->key.digest).str()};
  std::string paths;
  std::size_t headers = 0;
  for (const Closure::Item& item : answer->artifact.closure->items) {
    if (item.state != Closure::State::Read) continue;
    paths += recipe->places().path_of(item.root, item.name) + '\0';
    ++headers;
  }
  std::fprintf(stderr, "kiln-bench: %s: %zu bytes, %zu headers, %zu items in its closure\n", unit.name().c_str(),
               answer->artifact.bytes.size(), headers, answer->artifact.closure->items.size());
  if (headers == 0) return looked_at;
  const Fd file(open(list.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (Status written = write_all(file.get(), paths, list); !written) return std::move(written).error();
  looked_at.push_back(list);
  return looked_at;
}

Status measure(const std::string& name, const std::string& size, const Unit& unit, const Scratch& scratch,
               Outcomes& outcomes) {
  auto looked_at = prepare(unit, scratch / "cache", scratch / (size + ".headers"));
  if (!looked_at) return std::move(looked_at).error();
  setenv("KILN_COMPILE", "never", 1);  // from here on a miss is an error
  std::vector<std::string> ours{beside_this_program("kiln-bench-hit"), size};
  for (const IncludeRoot& root : unit.include_roots()) ours.push_back(root.path);
  std::vector<std::string> floor{beside_this_program("kiln-bench-floor"), size};
  floor.insert(floor.end(), looked_at->begin(), looked_at->end());

  Plan main{.name = name + "_main",
            .limit = 2,
            .ours = child_side(ours, &Times::from_main_us),
            .theirs = child_side(floor, &Times::from_main_us)};
  Plan exec{.name = name + "_exec_extra",
            .unit = "ms",
            .limit = 1,
            .ours = child_side(ours, &Times::from_exec_ms),
            .theirs = child_side(floor, &Times::from_exec_ms),
            .allowance = Allowance::Difference};
  for (Plan* plan : {&main, &exec}) {
    plan->warm_up = 10;
    plan->least_rounds = 100;
    plan->most_rounds = 2000;
    plan->small_spread = 0.05;
    if (Status added = add(outcomes, compare(*plan)); !added) return added;
  }
  return {};
}

}  // namespace

Result<Outcomes> new_process_hit() {
  const Scratch scratch;
  const auto roots = toolkit_include_roots();
  if (!roots) return roots.error();
  use_own_folders(scratch);
  setenv("KILN_CACHE_DIR", (scratch / "cache").c_str(), 1);  // for the children
  Outcomes outcomes;
  for (const auto& [size, unit] : {std::pair("small", small_unit()), std::pair("large", large_unit(*roots))}) {
    unsetenv("KILN_COMPILE");
    Status measured = measure(std::string("new_process_hit_") + size, size, unit, scratch, outcomes);
    if (!measured) return std::move(measured).error();
  }
  return outcomes;
}

}  // namespace kiln::bench
