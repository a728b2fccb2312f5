// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "engine/engine.hpp"
#include "support/fakes/fake_compiler.hpp"
#include "support/fakes/scripted_resolver.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {

/// The behavior of compiles of units with one name.
struct Script {
  bool held = false;                    ///< the compile waits until the test calls `open`
  std::chrono::nanoseconds takes{0};    ///< additional real time of the compile
  Origin origin = Origin::Compiled;     ///< origin of the result
  std::optional<Error> error = {};      ///< error of the compile
  std::optional<Error> no_recipe = {};  ///< error of `ResolverScript::recipe`
  bool throws = false;                  ///< the compile throws std::bad_alloc
  bool stoppable = false;  ///< the compile ends when its recipe's `stop` is requested, as in a worker process
};

/// A thread on which a callback was called.
struct SeenThread {
  std::thread::id id;
  std::string name;
  int nice = 0;
};

/// The script of a `ScriptedEngine`: counts compiles, blocks them at a gate or makes them fail. Nothing is compiled. It
/// must outlive the engines that use it. Thread-safe.
class ScriptedWork {
 public:
  /// Returns a request. Equal names give requests of equal content, each with its own Unit.
  static CompileRequest request(const std::string& name, int sm = 80) {
    return {Unit::of_kind("fake", name, "source of " + name), Target::sm(sm)};
  }
  static std::vector<CompileRequest> requests(const std::vector<std::string>& names) {
    std::vector<CompileRequest> made;
    made.reserve(names.size());
    for (const std::string& name : names) made.push_back(request(name));
    return made;
  }
  static Error rejection() { return make_error(Code::CompileFailed, "it does not compile", "line 1: no"); }

  ResolverScript params(EventEmitter emitter = {}, const Clock& clock = system_clock()) {
    ResolverScript params;
    params.recipe = [this](const CompileRequest& request) { return recipe(request); };
    params.resolve = [this](const CompileRequest&, const Recipe& recipe, const RequestContext& context) {
      return resolve(recipe, context);
    };
    params.inputs_changed = [this](const Recipe& recipe) { return changed(recipe.unit.name()); };
    params.interrupt = [this] { interrupt(); };
    params.clock = &clock;
    params.emitter = std::move(emitter);
    return params;
  }

  /// Sets the behavior of units with this name, or the default, from now on.
  void when(const std::string& name, Script script) {
    const MutexLock lock(mutex_);
    scripts_[name] = std::move(script);
    changed_.notify_all();
  }
  void otherwise(Script script) { when("", std::move(script)); }
  /// Opens the gate for waiting and future compiles of this name.
  void open(const std::string& name) {
    const MutexLock lock(mutex_);
    if (!scripts_.contains(name)) scripts_[name] = scripts_[""];
    scripts_[name].held = false;
    changed_.notify_all();
  }
  /// Sets whether `inputs_changed` reports changed inputs for this unit.
  void inputs_changed(const std::string& name, bool yes) {
    const MutexLock lock(mutex_);
    other_inputs_[name] = yes;
  }

  /// Waits until this many compiles of this name have started in total. Returns false on timeout.
  bool begun(const std::string& name, int times = 1) const {
    return eventually([&] { return times_begun(name) >= times; });
  }
  int times_begun(const std::string& name) const {
    const MutexLock lock(mutex_);
    return static_cast<int>(std::count(begun_.begin(), begun_.end(), name));
  }
  int compiles(const CompileRequest& request) {
    const RequestKey key = recipe_of(request).request_key();
    const MutexLock lock(mutex_);
    return compiles_[key];
  }
  int compiles(const std::string& name) { return compiles(request(name)); }
  /// Returns the names of all compiles in the order of their start.
  std::vector<std::string> begun_in_order() const {
    const MutexLock lock(mutex_);
    return begun_;
  }
  /// Returns the names of the running compiles, sorted.
  std::vector<std::string> running() const {
    const MutexLock lock(mutex_);
    std::vector<std::string> names = running_;
    std::sort(names.begin(), names.end());
    return names;
  }
  std::size_t max_at_once() const {
    const MutexLock lock(mutex_);
    return max_at_once_;
  }
  /// Returns the number of compiles per RequestKey.
  std::map<RequestKey, int> compiles() const {
    const MutexLock lock(mutex_);
    return compiles_;
  }
  /// Returns the threads on which recipes and results were requested, one entry per call.
  std::vector<SeenThread> threads() const {
    const MutexLock lock(mutex_);
    return threads_;
  }
  int interrupts() const {
    const MutexLock lock(mutex_);
    return interrupts_;
  }

 private:
  Recipe recipe_of(const CompileRequest& request) {
    return {request.unit, request.target, compiler_.identity({}).value(), "/", true};
  }

  Result<Recipe> recipe(const CompileRequest& request) {
    see_thread();
    const Script script = script_of(request.unit.name());
    if (script.no_recipe) return *script.no_recipe;
    return recipe_of(request);
  }

  Result<ResolveResult> resolve(const Recipe& recipe, const RequestContext& context) {
    const std::string name = recipe.unit.name();
    const RequestKey request = recipe.request_key();
    see_thread();
    const MutexLock lock(mutex_);
    ++compiles_[request];
    begun_.push_back(name);
    running_.push_back(name);
    max_at_once_ = std::max(max_at_once_, running_.size());
    changed_.notify_all();
    const Script script = pass_gate(name, context.stop);
    running_.erase(std::find(running_.begin(), running_.end(), name));
    changed_.notify_all();
    if (script.throws) throw std::bad_alloc();
    if (script.stoppable && context.stop.stop_requested()) return make_error(Code::Cancelled, "it was killed");
    if (script.error) return *script.error;
    return answer(recipe, request, script.origin, context.task_id);
  }

  /// Waits at the gate. Returns the script that was valid when it passed.
  Script pass_gate(const std::string& name, const std::stop_token& stop) KILN_REQUIRES(mutex_) {
    const int interrupts = interrupts_;
    while (script_for(name).held && interrupts_ == interrupts) {
      const bool stoppable = script_for(name).stoppable;
      if (stoppable && stop.stop_requested()) break;
      changed_.wait_for(mutex_, stoppable ? std::chrono::milliseconds(1) : kHangTimeout);
    }
    const std::chrono::nanoseconds end = system_clock().steady() + script_for(name).takes;
    while (interrupts_ == interrupts) {
      const std::chrono::nanoseconds remaining = end - system_clock().steady();
      if (remaining <= std::chrono::nanoseconds(0)) break;
      changed_.wait_for(mutex_, remaining);
    }
    Script script = script_for(name);
    if (interrupts_ != interrupts) script.error = make_error(Code::Cancelled, "interrupted");
    return script;
  }

  static ResolveResult answer(const Recipe& recipe, const RequestKey& request, Origin origin, std::uint64_t task_id) {
    ResolveResult answer;
    answer.artifact.bytes = Bytes::of("compiled " + recipe.unit.source());
    answer.artifact.target = recipe.target;
    answer.artifact.metadata = {recipe.unit.name(), "fake 1", 1, ""};
    answer.request = request;
    answer.key = artifact_key(request, DependencySet{});
    answer.origin = origin;
    answer.flow = task_id;
    return answer;
  }

  bool changed(const std::string& name) {
    const MutexLock lock(mutex_);
    return other_inputs_[name];
  }
  void interrupt() {
    const MutexLock lock(mutex_);
    ++interrupts_;
    changed_.notify_all();
  }

  void see_thread() {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    const int nice = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
    const MutexLock lock(mutex_);
    threads_.push_back({std::this_thread::get_id(), name, nice});
  }
  Script script_of(const std::string& name) {
    const MutexLock lock(mutex_);
    return script_for(name);
  }
  const Script& script_for(const std::string& name) KILN_REQUIRES(mutex_) {
    const auto found = scripts_.find(name);
    return found != scripts_.end() ? found->second : scripts_[""];
  }

  static constexpr std::chrono::seconds kHangTimeout{10};
  FakeCompiler compiler_;
  mutable Mutex mutex_;
  Condition changed_;
  std::map<std::string, Script> scripts_ KILN_GUARDED_BY(mutex_);
  std::map<std::string, bool> other_inputs_ KILN_GUARDED_BY(mutex_);
  std::map<RequestKey, int> compiles_ KILN_GUARDED_BY(mutex_);
  std::vector<std::string> begun_ KILN_GUARDED_BY(mutex_);
  std::vector<std::string> running_ KILN_GUARDED_BY(mutex_);
  std::vector<SeenThread> threads_ KILN_GUARDED_BY(mutex_);
  std::size_t max_at_once_ KILN_GUARDED_BY(mutex_) = 0;
  int interrupts_ KILN_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::test
