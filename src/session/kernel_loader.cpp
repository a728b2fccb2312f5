// SPDX-License-Identifier: Apache-2.0
#include "session/kernel_loader.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/format.hpp"
#include "core/unit_access.hpp"

namespace kiln {
namespace {

constexpr std::size_t kMaxUndeclaredUses = 10'000;

const EntryPoint* find_entry(const Artifact& artifact, const std::string& name) {
  if (name.empty() && artifact.entries.size() == 1) return &artifact.entries.front();
  for (const EntryPoint& entry : artifact.entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

Error no_entry(const KernelHandleState& handle, const Unit& unit, const Artifact& artifact) {
  const std::string name = "unit '" + unit.label() + "' has ";
  if (artifact.entries.empty()) {
    return make_error(Code::InvalidArgument, name + "no entry; add the name of its kernel with Unit::with_entry");
  }
  const std::string names = join_strings(artifact.entries, &EntryPoint::name);
  return make_error(Code::InvalidArgument,
                    handle.entry.empty() ? name + "several entries; name one of them: " + names
                                         : name + "no entry '" + handle.entry + "'; name one of its entries: " + names);
}

std::string named_for_load(const CompileRequest& request) { return "unit '" + request.unit.label() + "'"; }

Result<const detail::KernelState*> kernel_while_capturing(KernelHandleState& handle, const Unit& unit,
                                                          const Target& target, void* stream) {
  const detail::KernelState* const kernel = handle.current_for(target);
  if (kernel == nullptr) {
    return make_error(Code::Capturing,
                      "kernel '" + handle.entry + "' of unit '" + unit.label() +
                          "' is not ready and its stream is capturing a graph; get it before the capture");
  }
  if (Status prepared = kernel->kernel->prepare(stream); !prepared) return std::move(prepared).error();
  return kernel;
}

}  // namespace

bool KernelLoader::can_drop_bytes(const CompileRequest& request, const ResolveResult& result) {
  if (!request.load_on_device || !result.is_stored || result.is_slim) return false;
  DriverBackend* const driver = drivers_.get(driver_kind(request.unit));
  return driver != nullptr && driver->find(module_key(request.unit, result.key)) != nullptr;
}

Status KernelLoader::load(const CompileRequest& request, const ResolveResult& result) {
  if (!request.load_on_device) return {};
  DriverBackend* const driver = drivers_.get(driver_kind(request.unit));
  if (driver == nullptr || driver->opened() == nullptr) return {};
  const auto start = system_clock().steady();
  bool newly_loaded = false;
  if (result.is_slim) {
    if (driver->find(module_key(request.unit, result.key)) != nullptr) return {};
    return make_error(Code::LoadRejected, named_for_load(request) + " is no longer loaded");
  }
  const auto module = driver->module(module_key(request.unit, result.key), result.artifact, &newly_loaded);
  const bool rejected = !module && module.error().code == Code::LoadRejected;
  Status outcome = rejected ? Status(module.error()) : Status();
  if (newly_loaded || rejected) emit_load(request, result, milliseconds_since(system_clock(), start), outcome);
  return outcome;
}

void KernelLoader::emit_load(const CompileRequest& request, const ResolveResult& result, double ms,
                             const Status& outcome) const {
  if (!emitter_) return;
  const auto kind = outcome ? Event::Kind::Loaded : Event::Kind::LoadRejected;
  Event event = make_event(kind, request.unit, request.target, result.flow);
  event.key = result.key.hex();
  event.origin = to_string(result.origin);
  event.ms = ms;
  if (!outcome) event.message = outcome.error().message;
  emitter_.emit(event);
}

Result<const detail::KernelState*> KernelLoader::get(KernelHandleState& handle, const Unit& unit,
                                                     const Deadline& deadline, const StreamRef* stream, Caller caller) {
  if (unit.kind() == "cccl") {
    return make_error(Code::InvalidArgument, "unit '" + unit.label() +
                                                 "' is a CCCL algorithm, which has no kernels to launch; "
                                                 "use kiln::cccl::get");
  }
  record_undeclared_use(unit, handle.entry, caller);
  const auto driver = requests_.open(driver_kind(unit), deadline);
  if (!driver) return driver.error();
  const auto context = (*driver)->device().current_context();
  if (!context) return context.error();
  if (stream != nullptr) {
    const auto capturing = (*driver)->device().capturing(stream->native());
    if (!capturing) return capturing.error();
    if (*capturing)
      return kernel_while_capturing(handle, unit, effective_target(unit, context->target), stream->native());
  }
  const std::uint64_t epoch = handle.table.epoch();
  const CompileRequest request{unit, effective_target(unit, context->target), true};
  auto kernel = prepare_kernel(handle, **driver, request, deadline, caller);
  // A driver that loads lazily rejects late. The rejected code is not returned a second time.
  if (!kernel && kernel.error().code == Code::LoadRejected) {
    kernel = prepare_kernel(handle, **driver, request, deadline, caller);
  }
  if (!kernel) return kernel;
  // If all devices are alike, every thread of the process can use the kernel without checking its current device.
  handle.publish(**kernel, epoch, (*driver)->open()->size() == 1);
  return kernel;
}

Result<KernelLoader::LoadedModule> KernelLoader::load_module(const Unit& unit, const Deadline& deadline,
                                                             Caller caller) {
  record_undeclared_use(unit, {}, caller);
  // Before a compile, whose result could not be called.
  if (std::string reason = uncallable_reason(unit); !reason.empty()) {
    return make_error(Code::Unavailable, std::move(reason));
  }
  const auto driver = requests_.open(driver_kind(unit), deadline);
  if (!driver) return driver.error();
  const auto context = (*driver)->device().current_context();
  if (!context) return context.error();
  const CompileRequest request{unit, effective_target(unit, context->target), true};
  const auto result = get_loaded(request, deadline, caller);
  if (!result) return result.error();
  auto module = (*driver)->module(module_key(unit, (*result)->key), (*result)->artifact);
  if (!module) return std::move(module).error();
  return LoadedModule{std::move(*module), &(*driver)->device(), context->target, (*result)->flow, (*result)->origin};
}

std::string KernelLoader::uncallable_reason(const Unit& unit) {
  return unit.kind() == "cccl" ? drivers_.uncallable_cccl_reason() : std::string();
}

Result<ResolveResultPtr> KernelLoader::get_loaded(const CompileRequest& request, const Deadline& deadline,
                                                  Caller caller) {
  auto result = requests_.get(request, deadline, caller);
  if (result && (*result)->is_slim && !load(request, **result)) {
    // Another unit had the same code, and its release unloaded the module.
    engine_.forget(request);
    result = requests_.get(request, deadline, caller);
  }
  if (!result) return result;
  // The code was loaded in the background, unless another caller requested only its bytes.
  if (Status usable = load(request, **result); !usable) {
    engine_.forget(request);
    return std::move(usable).error();
  }
  if (can_drop_bytes(request, **result)) engine_.drop_bytes(request);
  return result;
}

// Returns the kernel of a request, prepared in the calling thread's context.
Result<const detail::KernelState*> KernelLoader::prepare_kernel(KernelHandleState& handle, DriverBackend& driver,
                                                                const CompileRequest& request, const Deadline& deadline,
                                                                Caller caller) {
  const auto result = get_loaded(request, deadline, caller);
  if (!result) return result.error();
  auto kernel = kernel_of(handle, driver, request, **result);
  if (!kernel) return kernel;
  const Status usable = (*kernel)->kernel->prepare(nullptr);
  if (usable) return kernel;
  if (usable.error().code == Code::LoadRejected) {
    emit_load(request, **result, 0, usable);
    driver.mark_rejected(module_key(request.unit, (*result)->key));
    handle.mark_rejected(**kernel);
    engine_.forget(request);
  }
  return usable.error();
}

// The target is that of the device, which can differ from the target of the artifact.
Result<const detail::KernelState*> KernelLoader::kernel_of(KernelHandleState& handle, DriverBackend& driver,
                                                           const CompileRequest& request, const ResolveResult& result) {
  const MutexLock lock(handle.mutex);
  const ArtifactKey key = module_key(request.unit, result.key);
  if (const detail::KernelState* existing = handle.find(request.target, key)) return existing;
  const EntryPoint* entry = find_entry(result.artifact, handle.entry);
  if (entry == nullptr) return no_entry(handle, request.unit, result.artifact);
  const auto module = driver.module(key, result.artifact);
  if (!module) return module.error();
  auto kernel = (*module)->kernel(entry->symbol);
  if (!kernel) return kernel.error();
  auto state = std::make_unique<detail::KernelState>();
  state->kernel = *std::move(kernel);
  state->key = key;
  state->name = entry->name;
  state->unit = request.unit.label();
  state->target = request.target;
  state->flow = result.flow;
  state->origin = result.origin;
  state->cpu_device = driver.is_cpu(request.target);
  state->emitter = emitter_;
  handle.kernels.push_back(std::move(state));
  return handle.kernels.back().get();
}

void KernelLoader::record_undeclared_use(const Unit& unit, const std::string& entry_name, Caller caller) {
  if (!record_undeclared_) return;
  // If the caller omitted the entry because there is only one, its name is reported.
  const std::vector<std::string>& entries = unit.entries();
  const std::string& entry = entry_name.empty() && entries.size() == 1 ? entries.front() : entry_name;
  UndeclaredUse use{unit.label(), entry, caller.text()};
  {
    const MutexLock lock(mutex_);
    if (declared_.count(UnitAccess::identity(unit)) != 0 || undeclared_.size() == kMaxUndeclaredUses) return;
    if (!undeclared_keys_.insert(use.unit + '\n' + use.entry + '\n' + use.caller).second) return;
    undeclared_.push_back(use);
  }
  if (!emitter_) return;
  Event event;
  event.kind = Event::Kind::Undeclared;
  event.unit = use.unit;
  event.message = use.caller + (use.entry.empty() ? " used it" : " used kernel '" + use.entry + "'") +
                  ", which no Requirements declared";
  emitter_.emit(event);
}

void KernelLoader::declare(const Units& units) {
  if (!record_undeclared_) return;
  const MutexLock lock(mutex_);
  for (const Unit& unit : units) declared_.insert(UnitAccess::identity(unit));
}

std::vector<UndeclaredUse> KernelLoader::undeclared() const {
  const MutexLock lock(mutex_);
  return undeclared_;
}

// A plan is ready when its kernels can be captured in a graph. Without a current context they cannot be prepared here;
// the launch prepares them.
void KernelLoader::prepare_in_current_context(const CompileRequest& request, DriverBackend& driver,
                                              const Target& target, const ResolveResult& result, std::uint64_t epoch) {
  if (request.unit.kind() == "cccl") return;  // its entries are not kernels to get
  const auto context = driver.device().current_context();
  if (!context || !(context->target == target)) return;
  for (const EntryPoint& entry : result.artifact.entries) {
    const auto slot = handles_.get(UnitAccess::identity(request.unit), entry.name);
    const auto kernel = kernel_of(*slot, driver, request, result);
    if (kernel && (*kernel)->kernel->prepare(nullptr)) slot->publish(**kernel, epoch, false);
  }
}

std::vector<NotReady> KernelLoader::wait_for(const Units& units, const Deadline& deadline, Caller caller) {
  requests_.request(units);
  std::vector<NotReady> cold;
  for (const Unit& unit : units) {
    const std::string& kind = driver_kind(unit);
    if (!drivers_.has_device(kind)) {
      cold.push_back({unit.label(), "", "there is no device for units of kind " + kind});
      continue;
    }
    if (std::string reason = uncallable_reason(unit); !reason.empty()) {
      cold.push_back({unit.label(), "", std::move(reason)});
      continue;
    }
    const auto driver = requests_.open(kind, deadline);
    if (!driver) {
      cold.push_back({unit.label(), "", driver.error().message});
      continue;
    }
    for (const Target& target : *(*driver)->open()) {
      const std::uint64_t epoch = handles_.epoch();
      const CompileRequest request{unit, effective_target(unit, target), true};
      const auto result = engine_.get(request, deadline, caller);
      if (!result) {
        cold.push_back({unit.label(), target.name(), result.error().message});
      } else {
        prepare_in_current_context(request, **driver, target, **result, epoch);
      }
    }
  }
  return cold;
}

}  // namespace kiln
