// What the first hit of a new process costs: nothing of kiln is warm in it but the files.
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/dynamic_library.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "bench/benchmarks.hpp"
#include "bench/scratch.hpp"
#include "bench/units.hpp"
#include "session/toolbox.hpp"
#include "store/cache_directory.hpp"

namespace kiln::bench {
namespace {

struct Times {
  double from_main_us = 0;
  double from_exec_ms = 0;
};

// Beside this program.
std::string program(const char* name) {
  char self[4096];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
  const std::string path(self, size > 0 ? static_cast<std::size_t>(size) : 0);
  return path.substr(0, path.rfind('/') + 1) + name;
}

Result<Times> run(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return io_failure("cannot make", "a pipe", errno);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
  pid_t child = 0;
  const std::int64_t start = now_ns();
  const int error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  int status = 1;
  if (error == 0) waitpid(child, &status, 0);
  const std::int64_t end = now_ns();
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return io_failure("cannot start", arguments.front(), error);
  writer = Fd();
  char text[64] = {};
  if (status != 0 || read(reader.get(), text, sizeof text - 1) <= 0) {
    return failure(Code::Internal, arguments.front() + " ended with status " + std::to_string(status));
  }
  return Times{static_cast<double>(std::strtoll(text, nullptr, 10)) / 1000.0, static_cast<double>(end - start) / 1e6};
}

// Fills the cache, and returns what the floor program has to look at: the entry and the list of headers.
Result<std::vector<std::string>> prepare(const Unit& unit, const std::string& cache, const std::string& list) {
  const Observer nobody;
  Toolbox toolbox(Config::load({.settings = {{"cache.dir", cache}}, .locked = {"cache.dir"}}, nobody), nobody);
  const Target target{kArchitecture, Form::Cubin};
  const auto recipe = toolbox.recipe(unit, target);
  if (!recipe) return recipe.error();
  const auto compiler = toolbox.compiler(unit.kind(), target);
  if (!compiler) return compiler.error();
  const auto answer = toolbox.resolver().get(*recipe, **compiler);
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
  std::vector<std::string> ours{program("kiln-bench-hit"), size};
  for (const IncludeRoot& root : unit.include_roots()) ours.push_back(root.path);
  std::vector<std::string> floor{program("kiln-bench-floor"), size};
  floor.insert(floor.end(), looked_at->begin(), looked_at->end());

  const auto side = [](const std::vector<std::string>& arguments, double Times::*which) -> Plan::Side {
    return [arguments, which]() -> Result<double> {
      auto times = run(arguments);
      if (!times) return std::move(times).error();
      return (*times).*which;
    };
  };
  Plan main{.name = name + "_main",
            .limit = 2,
            .ours = side(ours, &Times::from_main_us),
            .theirs = side(floor, &Times::from_main_us)};
  Plan exec{.name = name + "_exec_extra",
            .unit = "ms",
            .limit = 1,
            .ours = side(ours, &Times::from_exec_ms),
            .theirs = side(floor, &Times::from_exec_ms),
            .allowance = Allowance::Difference};
  for (Plan* plan : {&main, &exec}) {
    plan->warm_up = 10;
    plan->least_rounds = 100;
    plan->most_rounds = 2000;
    plan->small_spread = 0.05;
    auto outcome = compare(*plan);
    if (!outcome) return std::move(outcome).error();
    outcomes.push_back(std::move(*outcome));
  }
  return {};
}

}  // namespace

Result<Outcomes> new_process_hit() {
  const Scratch scratch;
  const auto roots = toolkit_include_roots();
  if (!roots) return roots.error();
  // For the children; nobody's configuration files are asked.
  setenv("KILN_CACHE_DIR", (scratch / "cache").c_str(), 1);
  setenv("XDG_CONFIG_HOME", (scratch / "config").c_str(), 1);
  Outcomes outcomes;
  for (const auto& [size, unit] : {std::pair("small", small_unit()), std::pair("large", large_unit(*roots))}) {
    unsetenv("KILN_COMPILE");
    Status measured = measure(std::string("new_process_hit_") + size, size, unit, scratch, outcomes);
    if (!measured) return std::move(measured).error();
  }
  return outcomes;
}

}  // namespace kiln::bench
