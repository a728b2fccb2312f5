// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/memory_state.hpp"

#include <algorithm>
#include <utility>

#include <kiln/runtime/events.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/visible_text.hpp"

namespace kiln::runtime {
namespace {

using cuda::DriverResult;
using cuda::to_device_pointer;
using cuda::to_pointer;
using cuda::to_stream;

bool has_limit(MemoryTier tier) { return tier == MemoryTier::Pool || tier == MemoryTier::RetryingPool; }

std::string in_words(MemoryTier tier) { return std::string("memory tier ") + to_string(tier); }

}  // namespace

Memory::State::State(MemoryOptions options)
    : options_(std::move(options)), overrides_{options_.tier, options_.limit, options_.retries} {
  const MutexLock lock(mutex_);
  read_settings();
}

void Memory::State::read_settings() {
  VariableReader variables;
  settings_ = effective_memory(overrides_, RequestedMemory::read(variables));
  warnings_ = variables.warnings();
  if (overrides_.retries.value_or(0) > kMaxMemoryRetries) {
    warnings_.push_back("the program requests " + std::to_string(*overrides_.retries) +
                        " retries of an allocation; at most " + std::to_string(kMaxMemoryRetries) + " are made");
  }
  if (settings_.tier_source == SettingSource::Environment && settings_.tier == MemoryTier::RetryingPool &&
      !options_.on_out_of_memory) {
    warnings_.push_back(
        "KILN_MEMORY_TIER=retrying_pool retries nothing: the program cannot free memory on request; it must set "
        "MemoryOptions::on_out_of_memory");
  }
  if (settings_.limit != 0 && !has_limit(settings_.tier)) {
    warnings_.push_back("the limit of " + std::to_string(settings_.limit) + " bytes is ignored: " +
                        in_words(settings_.tier) + " has no limit; use the tier pool or retrying_pool");
  }
}

Status Memory::State::check_no_device() const {
  if (places_.empty()) return {};
  return make_error(Code::InvalidArgument,
                    "the memory of a device is in use; change its settings before the first allocation");
}

Memory::Settings Memory::State::settings() const {
  const MutexLock lock(mutex_);
  return settings_;
}

Status Memory::State::check_process() { return opened_.check("the CUDA driver"); }

Result<std::shared_ptr<const CudaApi>> Memory::State::open_driver() {
  const MutexLock lock(mutex_);
  if (driver_.api != nullptr) return driver_.api;
  auto opened = CudaApi::open(options_.driver);
  if (!opened) return opened;
  driver_.memory = (*opened)->memory_functions();
  driver_.api = *std::move(opened);
  return driver_.api;
}

Result<cuda::DeviceNumber> Memory::State::current_device() {
  const auto api = open_driver();
  if (!api) return api.error();
  cuda::DeviceNumber device = 0;
  const DriverResult result = (**api)->CtxGetDevice(&device);
  if (result != DriverResult::Success) return (*api)->failure("cuCtxGetDevice", result);
  std::vector<Event> events;
  {
    const MutexLock lock(mutex_);
    if (places_.count(device) != 0) return device;
    const ScopedRelaxedCapture relaxed(**api);
    if (!relaxed.entered()) return relaxed.entered().error();
    events = set_up(device);
  }
  for (const Event& event : events) emit_event(event);
  return device;
}

std::vector<Event> Memory::State::set_up(cuda::DeviceNumber device) {
  std::vector<Event> events;
  for (std::string& warning : warnings_) {
    events.emplace_back().kind = Event::Kind::ConfigWarning;
    events.back().message = std::move(warning);
  }
  warnings_.clear();
  Event& event = events.emplace_back(Event::of(runtime::events::kMemoryTierSelected));
  DevicePool place;
  place.tier = settings_.tier;
  auto source = open_source(settings_.tier, driver_, device, settings_.limit);
  if (!source) {
    event.message = "device " + std::to_string(device) + " does not support " + in_words(settings_.tier) + ": " +
                    source.error().message + "; plain memory is used";
    if (settings_.limit != 0 && has_limit(settings_.tier)) event.message += " without a limit";
    place.tier = MemoryTier::Plain;
    source = open_source(place.tier, driver_, device, 0);
  }
  event.requested = to_string(settings_.tier);
  event.selected = to_string(place.tier);
  if (source) place.source = *std::move(source);
  places_.emplace(device, std::move(place));
  return events;
}

bool Memory::State::take(cuda::DeviceNumber device, std::size_t bytes, Attempt& attempt,
                         std::shared_ptr<MemorySource>& source) {
  const MutexLock lock(mutex_);
  DevicePool& place = places_.at(device);
  const std::uint64_t limit = has_limit(place.tier) ? settings_.limit : 0;
  if (place.source == nullptr) {
    attempt.reason = "the driver lacks functions for plain memory";
    return false;
  }
  if (limit != 0 && (bytes > limit || place.bytes > limit - bytes)) {
    attempt.reason = "the limit of " + std::to_string(limit) + " bytes would be exceeded, " +
                     std::to_string(place.bytes) + " bytes are in use (" + in_words(place.tier) + ")";
    attempt.short_of_memory = true;
    return false;
  }
  place.bytes += bytes;
  use_.bytes += bytes;
  source = place.source;
  return true;
}

void Memory::State::give_back(cuda::DeviceNumber device, std::size_t bytes) {
  const MutexLock lock(mutex_);
  places_.at(device).bytes -= bytes;
  use_.bytes -= bytes;
}

Memory::State::Attempt Memory::State::try_once(cuda::DeviceNumber device, std::size_t bytes, void* stream) {
  Attempt attempt;
  std::shared_ptr<MemorySource> source;
  // Reserve the bytes before allocating, so that two threads cannot exceed the limit together.
  if (!take(device, bytes, attempt, source)) return attempt;
  const auto api = open_driver().value();
  const ScopedRelaxedCapture relaxed(*api);
  cuda::DevicePointer address = 0;
  DriverResult result = DriverResult::Unknown;
  if (relaxed.entered()) {
    result = source->allocate(address, bytes, to_stream(stream));
    attempt.reason = result == DriverResult::Success ? "" : api->failure(source->driver_function(), result).message;
  } else {
    attempt.reason = relaxed.entered().error().message;
  }
  if (result != DriverResult::Success) {
    give_back(device, bytes);
    const MutexLock lock(mutex_);
    const DevicePool& place = places_.at(device);
    attempt.reason += " (" + in_words(place.tier) + ", " + std::to_string(place.bytes) + " bytes in use)";
    attempt.short_of_memory = result == DriverResult::OutOfMemory;
    return attempt;
  }
  attempt.memory = to_pointer(address);
  const MutexLock lock(mutex_);
  held_[attempt.memory] = {std::move(source), bytes, device};
  use_.peak = std::max(use_.peak, use_.bytes);
  return attempt;
}

bool Memory::State::request_free_memory(cuda::DeviceNumber device, std::size_t bytes, void* stream, unsigned retry,
                                        const std::string& reason) {
  const std::thread::id self = std::this_thread::get_id();
  unsigned retries = 0;
  {
    const MutexLock lock(mutex_);
    // An allocation inside the callback must not call it again, or it would recurse without end.
    if (places_.at(device).tier != MemoryTier::RetryingPool || threads_in_callback_.count(self) != 0) return false;
    if (!options_.on_out_of_memory || retry > settings_.retries) return false;
    retries = settings_.retries;
    threads_in_callback_.insert(self);
  }
  const bool freed = options_.on_out_of_memory(bytes);
  {
    const MutexLock lock(mutex_);
    threads_in_callback_.erase(self);
    if (freed) ++use_.retries;
  }
  if (!freed) return false;
  // Released memory becomes free in stream order, so wait for this stream.
  wait_for(*open_driver().value(), stream, "memory allocation is retried");
  Event event = Event::of(events::kAllocationRetried);
  event.bytes = bytes;
  event.stream = event_stream(stream);
  event.message = "retry " + std::to_string(retry) + " of " + std::to_string(retries) + ": " + reason;
  emit_event(event);
  return true;
}

void Memory::State::wait_for(const CudaApi& api, void* stream, const char* reason) const {
  const ScopedRelaxedCapture relaxed(api);
  if (!relaxed.entered()) return;
  const auto start = system_clock().steady();
  // A stream with an error runs nothing more, which is equivalent to a completed wait.
  if (api->StreamSynchronize(to_stream(stream)) != DriverResult::Success) return;
  Event event;
  event.kind = Event::Kind::Synchronized;
  event.stream = event_stream(stream);
  event.message = reason;
  event.ms = milliseconds_since(system_clock(), start);
  emit_event(event);
}

Result<void*> Memory::State::allocate(std::size_t bytes, void* stream) {
  if (Status own = check_process(); !own) return std::move(own).error();
  const auto device = current_device();
  if (!device) return reject(device.error().message);
  for (unsigned retry = 1;; ++retry) {
    Attempt attempt = try_once(*device, bytes, stream);
    if (attempt.memory != nullptr) return attempt.memory;
    if (!attempt.short_of_memory || !request_free_memory(*device, bytes, stream, retry, attempt.reason))
      return reject(std::move(attempt.reason));
  }
}

Error Memory::State::reject(std::string reason) {
  const MutexLock lock(mutex_);
  ++use_.failures;
  return make_error(Code::Unavailable, std::move(reason));
}

void Memory::State::release(void* memory, void* stream) {
  if (!check_process()) return;  // the memory belongs to the parent process
  const auto api = open_driver();
  if (!api) return;
  Allocation held;
  {
    const MutexLock lock(mutex_);
    const auto found = held_.find(memory);
    if (found == held_.end()) return;
    // Remove the record before freeing, because another thread can get the same address afterwards.
    held = std::move(found->second);
    held_.erase(found);
  }
  if (!held.source->is_stream_ordered()) wait_for(**api, stream, "memory that is not stream-ordered is freed");
  {
    const ScopedRelaxedCapture relaxed(**api);
    // If this fails, the context and its memory are lost. Do not retry: the error may come from an earlier launch, and
    // another thread may own the address by now.
    (void)held.source->release(to_device_pointer(memory), to_stream(stream));
  }
  give_back(held.device, held.bytes);
}

void Memory::State::set_emitter(EventEmitter emitter) {
  const MutexLock lock(mutex_);
  emitter_ = std::move(emitter);
}

void Memory::State::emit_event(const Event& event) const {
  EventEmitter emitter;
  {
    const MutexLock lock(mutex_);
    emitter = emitter_;
  }
  if (emitter) return emitter.emit(event);
  const bool fell_back = event.requested != event.selected;
  if (event.kind == Event::Kind::ConfigWarning || fell_back) print_warning(event.message);
}

std::optional<MemoryTier> Memory::State::tier_in_use() const {
  const MutexLock lock(mutex_);
  if (places_.empty()) return std::nullopt;
  const MemoryTier requested = settings_.tier;
  const bool fell_back =
      std::any_of(places_.begin(), places_.end(), [&](const auto& place) { return place.second.tier != requested; });
  return fell_back ? MemoryTier::Plain : requested;
}

Memory::Usage Memory::State::use() const {
  const MutexLock lock(mutex_);
  return use_;
}

Status Memory::State::trim() {
  if (Status own = check_process(); !own) return own;
  std::map<cuda::DeviceNumber, std::shared_ptr<MemorySource>> sources;
  {
    const MutexLock lock(mutex_);
    for (const auto& [device, place] : places_) {
      if (place.source != nullptr && has_limit(place.tier)) sources.emplace(device, place.source);
    }
  }
  for (const auto& [device, source] : sources) {
    const auto bytes = source->trim();
    if (!bytes) return bytes.error();
    Event event = Event::of(events::kMemoryTrimmed);
    event.bytes = *bytes;
    event.message = "the pool of device " + std::to_string(device) + " released unused memory";
    emit_event(event);
  }
  return {};
}

}  // namespace kiln::runtime
