#include "bench/instant_engine.hpp"

#include <chrono>
#include <thread>

#include "bench/harness.hpp"

namespace kiln::bench {

Engine::Parts instant_parts() {
  Engine::Parts parts;
  parts.recipe = [](const Order& order) -> Result<Recipe> {
    Recipe recipe{.unit = order.unit, .target = order.target};
    recipe.compiler.name = "instant";
    return recipe;
  };
  parts.resolve = [](const Order& /*order*/, const Recipe& recipe) -> Result<Answer> {
    Answer answer;
    answer.artifact.target = recipe.target;
    answer.origin = Origin::Memory;
    answer.flow = recipe.flow;
    return answer;
  };
  return parts;
}

std::vector<Order> unseen_orders(std::size_t count, std::size_t source_size) {
  static std::size_t number = 0;
  std::vector<Order> orders;
  orders.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::string source = "// kernel " + std::to_string(++number) + '\n';
    source.resize(std::max(source.size(), source_size), ' ');
    orders.push_back({Unit::cuda("bench.cu", std::move(source)).entry("kernel"), Target::sm(80)});
  }
  return orders;
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
