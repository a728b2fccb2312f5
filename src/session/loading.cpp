// From an order to a kernel that can be launched: the part of the core where artifacts meet drivers.
#include <algorithm>

#include "base/error.hpp"
#include "base/words.hpp"
#include "session/core.hpp"
#include "store/allowance.hpp"

namespace kiln {
namespace {

// How often another artifact is tried where the driver refuses one: another tier's, then the compiler's.
constexpr int kMostRefusals = 3;

std::size_t hash_of(const Digest& unit, const std::string& entry) {
  return std::hash<Digest>()(unit) ^ std::hash<std::string>()(entry);
}

const Entry* find_entry(const Artifact& artifact, const std::string& name) {
  if (name.empty() && artifact.entries.size() == 1) return &artifact.entries.front();
  for (const Entry& entry : artifact.entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

Error no_entry(const HandleState& handle, const Artifact& artifact) {
  const std::string names = joined(artifact.entries, &Entry::name);
  return failure(Code::InvalidArgument, "unit '" + handle.unit.label() + "' has no entry '" + handle.entry +
                                            "'; it has: " + (names.empty() ? "none" : names));
}

}  // namespace

const detail::KernelState* HandleState::find(const Target& target) const {
  for (const auto& kernel : kernels) {
    if (kernel->target == target) return kernel.get();
  }
  return nullptr;
}

// Recorded behind the get: whoever has no time to wait has none for opening configuration files either, and asks again.
Result<const Answer*> Core::get(const Order& order, std::chrono::nanoseconds limit, Caller caller) {
  auto answer = engine_->get(order, limit, caller);
  Toolbox* const made = made_toolbox_.load(std::memory_order_acquire);
  if (made != nullptr && made->recorder() != nullptr) made->recorder()->note(order.unit, order.target);
  return answer;
}

Result<std::optional<Answer>> Core::serve(const Order& order, std::uint64_t flow) {
  std::optional<Answer> answer = toolbox().serve(order.unit, order.target, flow);
  for (int refusals = 0; answer && refusals < kMostRefusals; ++refusals) {
    if (load(order, *answer)) return answer;
    const Bytes refused = answer->artifact.bytes;
    answer = toolbox().serve(order.unit, order.target, flow, &refused);
    if (answer && answer->artifact.bytes == refused) break;
  }
  return std::optional<Answer>();
}

Result<Answer> Core::resolve(const Order& order, const Recipe& recipe) {
  const auto compiler = toolbox().compiler(order.unit, order.target);
  if (!compiler) return compiler.error();
  toolbox().tell_of_bundles(recipe);
  Result<Answer> answer = toolbox().resolver().get(recipe, **compiler);
  // A compiler may have registered some in the middle of its first compile.
  if (!answer || answer->origin == Origin::Compiled) stay_ahead_of_exit_handlers();
  for (int refusals = 1; answer; ++refusals) {
    const Status loaded = load(order, *answer);
    if (loaded) return answer;
    const Bytes refused = answer->artifact.bytes;
    answer = toolbox().resolver().get(recipe, **compiler, &refused);
    // The compiler makes the same of it again: this driver and this compiler do not go together.
    if (answer && (answer->artifact.bytes == refused || refusals == kMostRefusals)) return loaded.error();
  }
  return answer;
}

Result<std::optional<Answer>> Core::look(const Order& order, std::uint64_t flow) {
  if (auto served = serve(order, flow); served && *served) return served;
  auto recipe = toolbox().recipe(order.unit, order.target);
  if (!recipe) return recipe.error();
  recipe->flow = flow;
  // Nobody's own thread waits for a server: if there is nothing on this host, one of the engine's asks.
  const Allowance no_server(std::chrono::nanoseconds(0));
  auto answer = toolbox().resolver().look(*recipe);
  // What is refused here will be refused again on a thread that has the time to do something about it.
  if (answer && *answer && !load(order, **answer)) return std::optional<Answer>();
  return answer;
}

Status Core::load(const Order& order, const Answer& answer) {
  if (!order.load) return {};
  Backend* const driver = backend(driver_kind(order.unit));
  if (driver == nullptr || driver->opened() == nullptr) return {};
  const auto start = system_clock().steady();
  bool fresh = false;
  const auto module = driver->module(answer.key, answer.artifact, &fresh);
  const bool refused = !module && module.error().code == Code::LoadRefused;
  Status outcome = refused ? Status(module.error()) : Status();
  if (fresh || refused) tell_of_load(order, answer, milliseconds_since(system_clock(), start), outcome);
  return outcome;
}

void Core::tell_of_load(const Order& order, const Answer& answer, double ms, const Status& outcome) const {
  if (!observer_) return;
  const auto kind = outcome ? Event::Kind::Loaded : Event::Kind::LoadRefused;
  Event event = event_of(kind, order.unit, order.target, answer.flow);
  event.key = answer.key.hex();
  event.origin = to_string(answer.origin);
  event.ms = ms;
  if (!outcome) event.message = outcome.error().message;
  observer_.tell(event);
}

HandleState* Core::find_handle(const Unit& unit, const std::string& entry) const {
  const Digest& identity = unit.identity();
  return handle_index_.find(hash_of(identity, entry), [&](const HandleState& handle) {
    return handle.identity == identity && handle.entry == entry;
  });
}

HandleState& Core::handle(const Unit& unit, const std::string& entry) {
  if (HandleState* known = find_handle(unit, entry)) return *known;
  const MutexLock lock(mutex_);
  if (HandleState* known = find_handle(unit, entry)) return *known;
  handles_.push_back(std::make_unique<HandleState>(session_, unit, entry));
  handle_index_.insert(hash_of(unit.identity(), entry), *handles_.back());
  return *handles_.back();
}

Result<const detail::KernelState*> Core::get(HandleState& handle, std::chrono::nanoseconds limit, void* const* stream,
                                             Caller caller) {
  const Deadline deadline(system_clock(), limit);
  if (handle.unit.kind() == "cccl") {
    return failure(Code::InvalidArgument, "unit '" + handle.unit.label() +
                                              "' is an algorithm of CCCL's, which has no kernels to launch one by one; "
                                              "kiln::cccl::get makes it callable");
  }
  note_use(handle.unit, handle.entry, caller);
  const auto driver = open(driver_kind(handle.unit), limit);
  if (!driver) return driver.error();
  const auto place = (*driver)->device().current();
  if (!place) return place.error();
  if (stream != nullptr) {
    const auto capturing = (*driver)->device().capturing(*stream);
    if (!capturing) return capturing.error();
    if (*capturing) return while_capturing(handle, place->target, *stream);
  }
  const Order order{handle.unit, fitted(handle.unit, place->target), true};
  auto kernel = ready_kernel(handle, **driver, order, deadline.left(), caller);
  // A driver that loads late refuses late, and what was refused is not asked for again.
  if (!kernel && kernel.error().code == Code::LoadRefused) {
    kernel = ready_kernel(handle, **driver, order, deadline.left(), caller);
  }
  if (!kernel) return kernel;
  // Every thread of the process may take it without asking where it is, if all devices are alike.
  if ((*driver)->open()->size() == 1) handle.ready.store(*kernel, std::memory_order_release);
  return kernel;
}

Result<Core::Used> Core::use(const Unit& unit, std::chrono::nanoseconds limit, Caller caller) {
  const Deadline deadline(system_clock(), limit);
  note_use(unit, {}, caller);
  const auto driver = open(driver_kind(unit), limit);
  if (!driver) return driver.error();
  const auto place = (*driver)->device().current();
  if (!place) return place.error();
  const Order order{unit, fitted(unit, place->target), true};
  const auto answer = get_loaded(order, deadline.left(), caller);
  if (!answer) return answer.error();
  auto module = (*driver)->module((*answer)->key, (*answer)->artifact);
  if (!module) return std::move(module).error();
  return Used{std::move(*module), &(*driver)->device(), place->target, (*answer)->flow, (*answer)->origin};
}

Result<const Answer*> Core::get_loaded(const Order& order, std::chrono::nanoseconds limit, Caller caller) {
  auto answer = get(order, limit, caller);
  if (!answer) return answer;
  // It was loaded in the background, unless somebody had ordered its bytes alone.
  if (Status usable = load(order, **answer); !usable) {
    engine_->forget(order);
    return std::move(usable).error();
  }
  return answer;
}

// The kernel of an order, made ready in the calling thread's context.
Result<const detail::KernelState*> Core::ready_kernel(HandleState& handle, Backend& driver, const Order& order,
                                                      std::chrono::nanoseconds limit, Caller caller) {
  const auto answer = get_loaded(order, limit, caller);
  if (!answer) return answer.error();
  auto kernel = kernel_of(handle, driver, order.target, **answer);
  if (!kernel) return kernel;
  const Status usable = (*kernel)->kernel->prepare(nullptr);
  if (usable) return kernel;
  if (usable.error().code == Code::LoadRefused) {
    tell_of_load(order, **answer, 0, usable);
    driver.refuse((*answer)->key, (*answer)->artifact.bytes);
    forget_kernel(handle, **kernel);
    engine_->forget(order);
  }
  return usable.error();
}

Result<const detail::KernelState*> Core::while_capturing(HandleState& handle, const Target& target, void* stream) {
  const detail::KernelState* found = nullptr;
  {
    const MutexLock lock(handle.mutex);
    found = handle.find(target);
  }
  if (found == nullptr) {
    return failure(Code::Capturing, "kernel '" + handle.entry + "' of unit '" + handle.unit.label() +
                                        "' is not ready and its stream records a graph; get it before the recording");
  }
  if (Status prepared = found->kernel->prepare(stream); !prepared) return std::move(prepared).error();
  return found;
}

// The target is the device's, which need not be what the artifact was made for.
Result<const detail::KernelState*> Core::kernel_of(HandleState& handle, Backend& driver, const Target& target,
                                                   const Answer& answer) {
  const MutexLock lock(handle.mutex);
  if (const detail::KernelState* known = handle.find(target)) return known;
  const Entry* entry = find_entry(answer.artifact, handle.entry);
  if (entry == nullptr) return no_entry(handle, answer.artifact);
  const auto module = driver.module(answer.key, answer.artifact);
  if (!module) return module.error();
  auto kernel = (*module)->kernel(entry->symbol);
  if (!kernel) return kernel.error();
  auto state = std::make_unique<detail::KernelState>();
  state->kernel = *std::move(kernel);
  state->name = entry->name;
  state->unit = handle.unit.label();
  state->target = target;
  state->flow = answer.flow;
  state->origin = answer.origin;
  state->observer = observer_;
  handle.kernels.push_back(std::move(state));
  return handle.kernels.back().get();
}

// Others may hold it, so it is kept; it is only not found any more.
void Core::forget_kernel(HandleState& handle, const detail::KernelState& kernel) {
  const MutexLock lock(handle.mutex);
  const auto known = std::find_if(handle.kernels.begin(), handle.kernels.end(),
                                  [&](const auto& other) { return other.get() == &kernel; });
  if (known == handle.kernels.end()) return;
  handle.refused.push_back(std::move(*known));
  handle.kernels.erase(known);
}

void Core::note_use(const Unit& unit, const std::string& entry_name, Caller caller) {
  if (!options_.record_undeclared) return;
  // Whoever left the entry out, since there is only one, is told which it was.
  const std::vector<std::string>& entries = unit.entries();
  const std::string& entry = entry_name.empty() && !entries.empty() ? entries.front() : entry_name;
  UndeclaredUse use{unit.label(), entry, caller.text()};
  {
    const MutexLock lock(mutex_);
    if (declared_.count(unit.identity()) != 0) return;
    undeclared_.push_back(use);
  }
  if (!observer_) return;
  Event event;
  event.kind = Event::Kind::Undeclared;
  event.unit = use.unit;
  event.message = use.caller + " used kernel '" + use.entry + "', which no Needs had declared";
  observer_.tell(event);
}

std::vector<UndeclaredUse> Core::undeclared() const {
  const MutexLock lock(mutex_);
  return undeclared_;
}

// A plan is warm when its kernels can be recorded into a graph. Where the caller has no context there is nowhere to do
// that, and a launch will.
void Core::prepare_here(const Unit& unit, Backend& driver, const Target& target, const Answer& answer) {
  const auto place = driver.device().current();
  if (!place || !(place->target == target)) return;
  for (const Entry& entry : answer.artifact.entries) {
    const auto kernel = kernel_of(handle(unit, entry.name), driver, target, answer);
    if (kernel) (void)(*kernel)->kernel->prepare(nullptr);
  }
}

std::vector<Cold> Core::wait_for(const Units& units, std::chrono::nanoseconds limit, Caller caller) {
  const Deadline deadline(system_clock(), limit);
  request(units);
  std::vector<Cold> cold;
  for (const Unit& unit : units) {
    if (!present(driver_kind(unit))) continue;
    const auto driver = open(driver_kind(unit), deadline.left());
    if (!driver) {
      cold.push_back({unit.label(), "", driver.error().message});
      continue;
    }
    for (const Target& target : *(*driver)->open()) {
      const auto answer = engine_->get({unit, fitted(unit, target), true}, deadline.left(), caller);
      if (!answer) {
        cold.push_back({unit.label(), target.name(), answer.error().message});
      } else {
        prepare_here(unit, **driver, target, **answer);
      }
    }
  }
  return cold;
}

}  // namespace kiln
