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
#include "support/eventually.hpp"
#include "support/fake_compiler.hpp"
#include "warm/engine.hpp"

namespace kiln::test {

/// How the work on units of one name goes.
struct Script {
  bool held = false;                    ///< the compile waits until the test calls `open`
  std::chrono::nanoseconds takes{0};    ///< of real time, after that
  Origin origin = Origin::Compiled;     ///< what the answer says
  std::optional<Error> error = {};      ///< of the compile
  std::optional<Error> no_recipe = {};  ///< of `Parts::recipe`
  bool throws = false;                  ///< the compile ends by std::bad_alloc
  bool stoppable = false;               ///< it ends when its recipe's `stop` is requested, as in a process of its own
};

/// A thread on which a part was called.
struct SeenThread {
  std::thread::id id;
  std::string name;
  int nice = 0;
};

/// The world of an Engine, as a test says it shall be: counts compiles, holds them at a gate, makes them fail. Nothing
/// is compiled. Any thread. It must outlive the engines that got its parts.
class ScriptedWork {
 public:
  /// Equal names give orders of equal content, each with a Unit of its own.
  static Order order(const std::string& name, int sm = 80) {
    return {Unit::of_kind("fake", name, "source of " + name), Target::sm(sm)};
  }
  static std::vector<Order> orders(const std::vector<std::string>& names) {
    std::vector<Order> made;
    made.reserve(names.size());
    for (const std::string& name : names) made.push_back(order(name));
    return made;
  }
  static Error refusal() { return failure(Code::CompileFailed, "it does not compile", "line 1: no"); }

  Engine::Parts parts(Observer observer = {}, const Clock& clock = system_clock()) {
    Engine::Parts parts;
    parts.recipe = [this](const Order& order) { return recipe(order); };
    parts.resolve = [this](const Order&, const Recipe& recipe) { return resolve(recipe); };
    parts.changed_since_failure = [this](const Recipe& recipe) { return changed(recipe.unit.name()); };
    parts.interrupt = [this] { interrupt(); };
    parts.clock = &clock;
    parts.observer = std::move(observer);
    return parts;
  }

  /// From now on units of this name, or those of which nothing was said, go this way.
  void when(const std::string& name, Script script) {
    const MutexLock lock(mutex_);
    scripts_[name] = std::move(script);
    changed_.notify_all();
  }
  void otherwise(Script script) { when("", std::move(script)); }
  /// Lets compiles of this name pass, those that wait and those to come.
  void open(const std::string& name) {
    const MutexLock lock(mutex_);
    if (!scripts_.contains(name)) scripts_[name] = scripts_[""];
    scripts_[name].held = false;
    changed_.notify_all();
  }
  /// Whether `changed_since_failure` says that the inputs of this unit are others now.
  void inputs_changed(const std::string& name, bool yes) {
    const MutexLock lock(mutex_);
    other_inputs_[name] = yes;
  }

  /// Waits until that many compiles of this name have begun in all; false when that does not come about.
  bool begun(const std::string& name, int times = 1) const {
    return eventually([&] { return times_begun(name) >= times; });
  }
  int times_begun(const std::string& name) const {
    const MutexLock lock(mutex_);
    return static_cast<int>(std::count(begun_.begin(), begun_.end(), name));
  }
  int compiles(const Order& order) {
    const RequestKey key = recipe_of(order).request_key();
    const MutexLock lock(mutex_);
    return compiles_[key];
  }
  int compiles(const std::string& name) { return compiles(order(name)); }
  /// The names of all compiles, in the order in which they began.
  std::vector<std::string> begun_in_order() const {
    const MutexLock lock(mutex_);
    return begun_;
  }
  /// The names of those that run, sorted.
  std::vector<std::string> running() const {
    const MutexLock lock(mutex_);
    std::vector<std::string> names = running_;
    std::sort(names.begin(), names.end());
    return names;
  }
  std::size_t most_at_once() const {
    const MutexLock lock(mutex_);
    return most_at_once_;
  }
  /// How often each RequestKey was compiled.
  std::map<RequestKey, int> compiles() const {
    const MutexLock lock(mutex_);
    return compiles_;
  }
  /// The threads on which recipes and answers were asked for, one for each call.
  std::vector<SeenThread> threads() const {
    const MutexLock lock(mutex_);
    return threads_;
  }
  int interrupts() const {
    const MutexLock lock(mutex_);
    return interrupts_;
  }

 private:
  Recipe recipe_of(const Order& order) { return {order.unit, order.target, compiler_.identity().value(), "/", true}; }

  Result<Recipe> recipe(const Order& order) {
    see_thread();
    const Script script = script_of(order.unit.name());
    if (script.no_recipe) return *script.no_recipe;
    return recipe_of(order);
  }

  Result<Answer> resolve(const Recipe& recipe) {
    const std::string name = recipe.unit.name();
    const RequestKey request = recipe.request_key();
    see_thread();
    const MutexLock lock(mutex_);
    ++compiles_[request];
    begun_.push_back(name);
    running_.push_back(name);
    most_at_once_ = std::max(most_at_once_, running_.size());
    changed_.notify_all();
    const Script script = pass_gate(name, recipe.stop);
    running_.erase(std::find(running_.begin(), running_.end(), name));
    changed_.notify_all();
    if (script.throws) throw std::bad_alloc();
    if (script.stoppable && recipe.stop.stop_requested()) return failure(Code::Cancelled, "it was killed");
    if (script.error) return *script.error;
    return answer(recipe, request, script.origin);
  }

  /// What was said of it when it passed.
  Script pass_gate(const std::string& name, const std::stop_token& stop) KILN_REQUIRES(mutex_) {
    const int interrupts = interrupts_;
    while (script_for(name).held && interrupts_ == interrupts) {
      const bool stoppable = script_for(name).stoppable;
      if (stoppable && stop.stop_requested()) break;
      changed_.wait_for(mutex_, stoppable ? std::chrono::milliseconds(1) : kPatience);
    }
    const std::chrono::nanoseconds end = system_clock().steady() + script_for(name).takes;
    while (interrupts_ == interrupts) {
      const std::chrono::nanoseconds left = end - system_clock().steady();
      if (left <= std::chrono::nanoseconds(0)) break;
      changed_.wait_for(mutex_, left);
    }
    Script script = script_for(name);
    if (interrupts_ != interrupts) script.error = failure(Code::Cancelled, "interrupted");
    return script;
  }

  static Answer answer(const Recipe& recipe, const RequestKey& request, Origin origin) {
    Answer answer;
    answer.artifact.bytes = Bytes::of("compiled " + recipe.unit.source());
    answer.artifact.target = recipe.target;
    answer.artifact.about = {recipe.unit.name(), "fake 1", 1, ""};
    answer.request = request;
    answer.key = key_of(request, Closure{});
    answer.origin = origin;
    answer.flow = recipe.flow;
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

  static constexpr std::chrono::seconds kPatience{10};
  FakeCompiler compiler_;
  mutable Mutex mutex_;
  Condition changed_;
  std::map<std::string, Script> scripts_ KILN_GUARDED_BY(mutex_);
  std::map<std::string, bool> other_inputs_ KILN_GUARDED_BY(mutex_);
  std::map<RequestKey, int> compiles_ KILN_GUARDED_BY(mutex_);
  std::vector<std::string> begun_ KILN_GUARDED_BY(mutex_);
  std::vector<std::string> running_ KILN_GUARDED_BY(mutex_);
  std::vector<SeenThread> threads_ KILN_GUARDED_BY(mutex_);
  std::size_t most_at_once_ KILN_GUARDED_BY(mutex_) = 0;
  int interrupts_ KILN_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::test
