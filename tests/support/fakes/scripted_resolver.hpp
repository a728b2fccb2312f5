// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "engine/engine.hpp"

namespace kiln::test {

/// The behavior of a scripted resolver. A function that is not set finds nothing and changes nothing.
struct ResolverScript {
  std::function<Result<std::optional<ResolveResult>>(const CompileRequest&, const RequestContext&)> find_prebuilt;
  std::function<std::unique_ptr<EarlyCompile>(const CompileRequest&)> start_early;
  std::function<Result<Recipe>(const CompileRequest&)> recipe;
  std::function<Result<ResolveResult>(const CompileRequest&, const Recipe&, const RequestContext&)> resolve;
  std::function<Result<std::optional<ResolveResult>>(const CompileRequest&, const RequestContext&)> lookup;
  std::function<bool(const Recipe&)> inputs_changed;
  std::function<bool(const CompileRequest&, const ResolveResult&, const RequestContext&)> is_current;
  std::function<void()> interrupt;
  FleetPlace fleet_place;
  const Clock* clock = &system_clock();
  EventEmitter emitter;
};

/// A resolver that runs a script, and the source of itself. Thread-safe if the script is.
class ScriptedResolver final : public Resolver, public ResolverSource {
 public:
  explicit ScriptedResolver(ResolverScript script) : Resolver(params_of(script)), script_(std::move(script)) {}

  Result<std::optional<ResolveResult>> find_prebuilt(const CompileRequest& request,
                                                     const RequestContext& context) override {
    if (!script_.find_prebuilt) return std::optional<ResolveResult>();
    return script_.find_prebuilt(request, context);
  }
  std::unique_ptr<EarlyCompile> start_early(const CompileRequest& request, const RequestContext&) override {
    return script_.start_early ? script_.start_early(request) : nullptr;
  }
  Result<Recipe> recipe(const CompileRequest& request, const RequestContext&) override {
    return script_.recipe(request);
  }
  Result<ResolveResult> resolve(const CompileRequest& request, const Recipe& recipe,
                                const RequestContext& context) override {
    return script_.resolve(request, recipe, context);
  }
  Result<std::optional<ResolveResult>> lookup(const CompileRequest& request, const RequestContext& context) override {
    if (!script_.lookup) return std::optional<ResolveResult>();
    return script_.lookup(request, context);
  }
  bool inputs_changed(const Recipe& recipe) override {
    return script_.inputs_changed && script_.inputs_changed(recipe);
  }
  bool is_current(const CompileRequest& request, const ResolveResult& result, const RequestContext& context) override {
    return script_.is_current && script_.is_current(request, result, context);
  }
  void interrupt() override {
    if (script_.interrupt) script_.interrupt();
  }

  Resolver& resolver() override { return *this; }
  Resolver& resolver_for_task() override { return *this; }
  Resolver* opened_resolver() noexcept override { return this; }

 private:
  static Params params_of(const ResolverScript& script) {
    Params params;
    params.fleet_place = script.fleet_place;
    return params;
  }

  const ResolverScript script_;
};

namespace detail {
/// Constructed before the engine that uses it.
struct ResolverOwner {
  ScriptedResolver owned;
  const Clock& clock;
};
}  // namespace detail

/// An engine whose resolver runs a script. Thread-safe.
class ScriptedEngine : private detail::ResolverOwner, public Engine {
 public:
  explicit ScriptedEngine(const ResolverScript& script) : ScriptedEngine(script, Options()) {}
  ScriptedEngine(const ResolverScript& script, Options options)
      : ResolverOwner{ScriptedResolver(script), *script.clock}, Engine(owned, with_script(std::move(options), script)) {
  }

  /// Waits by the clock of the script.
  Result<ResolveResultPtr> get(const CompileRequest& request, std::chrono::nanoseconds timeout,
                               Caller caller = Caller::here()) {
    return Engine::get(request, Deadline(clock, timeout), caller);
  }

 private:
  static Options with_script(Options options, const ResolverScript& script) {
    options.clock = script.clock;
    options.emitter = script.emitter;
    return options;
  }
};

}  // namespace kiln::test
