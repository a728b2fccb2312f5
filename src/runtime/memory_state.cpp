#include "runtime/memory_state.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace kiln::runtime {
namespace {

using cuda::DriverResult;
using cuda::memory_at;
using cuda::pointer_of;
using cuda::stream_of;

constexpr unsigned kRetries = 3;

// An allocator has one null for every reason; the error that follows it is made in the same thread.
thread_local std::string last_refusal;

bool has_limit(MemoryTier tier) { return tier == MemoryTier::Pool || tier == MemoryTier::PatientPool; }

std::string in_words(MemoryTier tier) { return std::string("memory tier ") + to_string(tier); }

}  // namespace

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
  Event event;
  {
    const MutexLock lock(mutex_);
    if (places_.count(device) != 0) return device;
    const RelaxedCapture relaxed(**api);
    if (!relaxed.entered()) return relaxed.entered().error();
    set_up(device, event);
  }
  tell_of(event);
  return device;
}

void Memory::State::set_up(cuda::DeviceNumber device, Event& event) {
  Place place;
  place.tier = options_.tier;
  auto source = open_source(options_.tier, driver_, device, options_.limit);
  if (!source) {
    event.message = "device " + std::to_string(device) + " has no " + in_words(options_.tier) + ": " +
                    source.error().message + "; it is served plain memory";
    if (options_.limit != 0 && has_limit(options_.tier)) event.message += ", which has no limit";
    place.tier = MemoryTier::Plain;
    source = open_source(place.tier, driver_, device, 0);
  }
  event.kind = Event::Kind::MemorySet;
  event.requested = to_string(options_.tier);
  event.selected = to_string(place.tier);
  if (source) place.source = *std::move(source);
  places_.emplace(device, std::move(place));
}

bool Memory::State::take(cuda::DeviceNumber device, std::size_t bytes, Attempt& attempt,
                         std::shared_ptr<MemorySource>& source) {
  const MutexLock lock(mutex_);
  Place& place = places_.at(device);
  const std::uint64_t limit = has_limit(place.tier) ? options_.limit : 0;
  if (place.source == nullptr) {
    attempt.why = "the driver has not all functions for plain memory";
    return false;
  }
  if (limit != 0 && (bytes > limit || place.bytes > limit - bytes)) {
    attempt.why = "the limit of " + std::to_string(limit) + " bytes would be passed, of which " +
                  std::to_string(place.bytes) + " are in use (" + in_words(place.tier) + ")";
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
  // Taken from the count first, so that two threads never pass the limit together.
  if (!take(device, bytes, attempt, source)) return attempt;
  const auto api = open_driver().value();
  const RelaxedCapture relaxed(*api);
  cuda::DevicePointer address = 0;
  DriverResult result = DriverResult::Unknown;
  if (relaxed.entered()) {
    result = source->allocate(address, bytes, stream_of(stream));
    attempt.why = result == DriverResult::Success ? "" : api->failure(source->entry(), result).message;
  } else {
    attempt.why = relaxed.entered().error().message;
  }
  if (result != DriverResult::Success) {
    give_back(device, bytes);
    const MutexLock lock(mutex_);
    const Place& place = places_.at(device);
    attempt.why += " (" + in_words(place.tier) + ", " + std::to_string(place.bytes) + " bytes in use)";
    attempt.short_of_memory = result == DriverResult::OutOfMemory;
    return attempt;
  }
  attempt.memory = memory_at(address);
  const MutexLock lock(mutex_);
  held_[attempt.memory] = {std::move(source), bytes, device};
  use_.peak = std::max(use_.peak, use_.bytes);
  return attempt;
}

bool Memory::State::make_room(cuda::DeviceNumber device, std::size_t bytes, void* stream, unsigned retry,
                              const std::string& why) {
  const std::thread::id self = std::this_thread::get_id();
  {
    const MutexLock lock(mutex_);
    // What the callback allocates itself must not ask it again, or it would never come to an end.
    if (places_.at(device).tier != MemoryTier::PatientPool || asking_.count(self) != 0) return false;
    if (!options_.on_out_of_memory) return false;
    asking_.insert(self);
  }
  const bool freed = options_.on_out_of_memory(bytes);
  {
    const MutexLock lock(mutex_);
    asking_.erase(self);
    if (freed) ++use_.retries;
  }
  if (!freed) return false;
  // What was released is free when the streams come to it; this one is waited for, so that it is.
  wait_for(*open_driver().value(), stream, "memory is tried again");
  Event event;
  event.kind = Event::Kind::MemoryRetried;
  event.bytes = bytes;
  event.stream = reinterpret_cast<std::uintptr_t>(stream);
  event.message = "retry " + std::to_string(retry) + " of " + std::to_string(kRetries) + ": " + why;
  tell_of(event);
  return true;
}

void Memory::State::wait_for(const CudaApi& api, void* stream, const char* why) const {
  const RelaxedCapture relaxed(api);
  if (!relaxed.entered()) return;
  const auto start = system_clock().steady();
  // A stream that is broken does nothing any more, which is as good as having waited.
  if (api->StreamSynchronize(stream_of(stream)) != DriverResult::Success) return;
  Event event;
  event.kind = Event::Kind::Synchronised;
  event.stream = reinterpret_cast<std::uintptr_t>(stream);
  event.message = why;
  event.ms = milliseconds_since(system_clock(), start);
  tell_of(event);
}

void* Memory::State::allocate(std::size_t bytes, void* stream) {
  if (Status own = check_process(); !own) {
    last_refusal = std::move(own).error().message;
    return nullptr;
  }
  const auto device = current_device();
  if (!device) return refuse(device.error().message);
  for (unsigned retry = 1;; ++retry) {
    Attempt attempt = try_once(*device, bytes, stream);
    if (attempt.memory != nullptr) return attempt.memory;
    const bool again = attempt.short_of_memory && retry <= kRetries;
    if (!again || !make_room(*device, bytes, stream, retry, attempt.why)) return refuse(std::move(attempt.why));
  }
}

void* Memory::State::refuse(std::string why) {
  last_refusal = std::move(why);
  const MutexLock lock(mutex_);
  ++use_.refusals;
  return nullptr;
}

std::string Memory::State::why() { return last_refusal; }

void Memory::State::release(void* memory, void* stream) {
  if (!check_process()) return;  // the memory is the parent's
  const auto api = open_driver();
  if (!api) return;
  Held held;
  {
    const MutexLock lock(mutex_);
    const auto found = held_.find(memory);
    if (found == held_.end()) return;
    // Forgotten before it is freed: from then on another thread may be given the same address.
    held = std::move(found->second);
    held_.erase(found);
  }
  if (!held.source->follows_streams()) wait_for(**api, stream, "memory that follows no stream is freed");
  {
    const RelaxedCapture relaxed(**api);
    // Where this fails the context is broken or gone, and the memory with it. It is not tried again: the failure may be
    // that of an earlier launch, and the address somebody else's by now.
    (void)held.source->release(pointer_of(memory), stream_of(stream));
  }
  give_back(held.device, held.bytes);
}

void Memory::State::tell(EventCallback listeners) {
  const MutexLock lock(mutex_);
  listeners_ = std::move(listeners);
}

void Memory::State::tell_of(const Event& event) const {
  EventCallback listeners;
  {
    const MutexLock lock(mutex_);
    listeners = listeners_;
  }
  if (listeners) listeners(event);
}

MemoryTier Memory::State::backend() const {
  const MutexLock lock(mutex_);
  const bool fell_back = std::any_of(places_.begin(), places_.end(),
                                     [this](const auto& place) { return place.second.tier != options_.tier; });
  return fell_back ? MemoryTier::Plain : options_.tier;
}

Memory::Use Memory::State::use() const {
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
    Event event;
    event.kind = Event::Kind::MemoryTrimmed;
    event.bytes = *bytes;
    event.message = "the pool of device " + std::to_string(device) + " gave back what nobody used";
    tell_of(event);
  }
  return {};
}

}  // namespace kiln::runtime
