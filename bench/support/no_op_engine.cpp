// SPDX-License-Identifier: Apache-2.0
#include "bench/support/no_op_engine.hpp"

#include <chrono>
#include <thread>

#include "bench/support/harness.hpp"

namespace kiln::bench {

namespace {

/// A resolver whose functions return at once, and the source of itself. Thread-safe.
class InstantResolver final : public Resolver, public ResolverSource {
 public:
  InstantResolver() : Resolver(Params{}) {}

  Result<Recipe> recipe(const CompileRequest& request, const RequestContext&) override {
    Recipe recipe{.unit = request.unit, .target = request.target};
    recipe.compiler.name = "instant";
    return recipe;
  }
  Result<ResolveResult> resolve(const CompileRequest& /*request*/, const Recipe& recipe,
                                const RequestContext& context) override {
    ResolveResult result;
    result.artifact.target = recipe.target;
    result.origin = Origin::Memory;
    result.flow = context.task_id;
    return result;
  }
  Result<std::optional<ResolveResult>> lookup(const CompileRequest& /*request*/, const RequestContext&) override {
    return std::optional<ResolveResult>();
  }

  Resolver& resolver() override { return *this; }
  Resolver& resolver_for_task() override { return *this; }
  Resolver* opened_resolver() noexcept override { return this; }
};

}  // namespace

ResolverSource& instant_resolver() {
  static InstantResolver resolver;
  return resolver;
}

std::vector<CompileRequest> unseen_orders(std::size_t count, std::size_t source_size) {
  static std::size_t number = 0;
  std::vector<CompileRequest> requests;
  requests.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::string source = "// kernel " + std::to_string(++number) + '\n';
    source.resize(std::max(source.size(), source_size), ' ');
    requests.push_back({Unit::cuda("bench.cu", std::move(source)).with_entry("kernel"), Target::sm(80)});
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
