// SPDX-License-Identifier: Apache-2.0
// The cost of the first hit of a new process, in which only the files are cached by the system.
#include <fcntl.h>
#include <stdlib.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "bench/benchmarks.hpp"
#include "bench/support/child_process.hpp"
#include "bench/support/scratch.hpp"
#include "bench/support/units.hpp"
#include "cache/cache_directory.hpp"
#include "session/access.hpp"

namespace kiln::bench {
namespace {

// Fills the cache, and returns the inputs of kiln-bench-floor: the entry and the list of headers.
Result<std::vector<std::string>> prepare(const Unit& unit, const std::string& cache, const std::string& list) {
  auto session = Session::open({.settings = {{"cache.dir", cache}}, .locked = {"cache.dir"}});
  if (!session) return std::move(session).error();
  const Target target{kArchitecture, Form::Cubin};
  const auto recipe = detail::SessionAccess::components(*session).recipe(unit, target, {});
  if (!recipe) return recipe.error();
  const auto answer = session->resolve(unit, target);
  if (!answer) return answer.error();
  std::vector<std::string> looked_at{cache + "/v1/" + ShardedName("entries", answer->key.digest).str()};
  std::string paths;
  std::size_t headers = 0;
  for (const DependencySet::Dependency& item : answer->artifact.dependency_set->items) {
    if (item.state != DependencySet::State::Read) continue;
    paths += recipe->path_roots().path_of(item.root, item.name) + '\0';
    ++headers;
  }
  std::fprintf(stderr, "kiln-bench: %s: %zu bytes, %zu headers, %zu items in its dependency set\n", unit.name().c_str(),
               answer->artifact.bytes.size(), headers, answer->artifact.dependency_set->items.size());
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
            .budget = Budget::Difference};
  for (Plan* plan : {&main, &exec}) {
    plan->warm_up = 10;
    plan->min_rounds = 100;
    plan->max_rounds = 2000;
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
  use_own_directories(scratch);
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
