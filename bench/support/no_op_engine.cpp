#include "bench/support/no_op_engine.hpp"

#include <chrono>
#include <thread>

#include "bench/support/harness.hpp"

namespace kiln::bench {

Engine::Callbacks instant_parts() {
  Engine::Callbacks params;
  params.recipe = [](const CompileRequest& request) -> Result<Recipe> {
    Recipe recipe{.unit = request.unit, .target = request.target};
    recipe.compiler.name = "instant";
    return recipe;
  };
  params.resolve = [](const CompileRequest& /*order*/, const Recipe& recipe) -> Result<ResolveResult> {
    ResolveResult answer;
    answer.artifact.target = recipe.target;
    answer.origin = Origin::Memory;
    answer.flow = recipe.task_id;
    return answer;
  };
  return params;
}

std::vector<CompileRequest> unseen_orders(std::size_t count, std::size_t source_size) {
  static std::size_t number = 0;
  std::vector<CompileRequest> requests;
  requests.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::string source = "// kernel " + std::to_string(++number) + '\n';
    source.resize(std::max(source.size(), source_size), ' ');
    requests.push_back({Unit::cuda("bench.cu", std::move(source)).entry("kernel"), Target::sm(80)});
  }
  return requests;
}

bool wait_until_idle(const Engine& engine) {
  const std::int64_t end = now_ns() + 10'000'000'000;
  while (engine.status().pending != 0) {
    if (now_ns() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace kiln::bench
