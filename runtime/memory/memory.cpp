// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/memory.hpp>

#include <atomic>
#include <utility>

#include "base/error.hpp"
#include "runtime/memory/memory_state.hpp"

namespace kiln::runtime {

Memory::Memory(MemoryOptions options) : state_(std::make_shared<State>(std::move(options))) {}

Allocator Memory::allocator() const {
  Allocator made;
  made.allocate = [state = state_](std::size_t bytes, StreamRef stream) {
    return state->allocate(bytes, stream.native());
  };
  made.release = [state = state_](void* memory, std::size_t /*bytes*/, StreamRef stream) {
    state->release(memory, stream.native());
  };
  made.backend = kiln::Backend::Cuda;
  return made;
}

void Memory::set_event_callback(EventCallback callback, const std::atomic<bool>* enabled) const {
  state_->set_emitter(EventEmitter(std::move(callback), enabled));
}

Memory::Settings Memory::settings() const { return state_->settings(); }

Status Memory::set_tier(std::optional<MemoryTier> tier) const { return state_->set(&RequestedMemory::tier, tier); }

Status Memory::set_limit(std::optional<std::uint64_t> limit) const {
  return state_->set(&RequestedMemory::limit, limit);
}

Status Memory::set_retries(std::optional<unsigned> retries) const {
  return state_->set(&RequestedMemory::retries, retries);
}

std::optional<MemoryTier> Memory::tier() const { return state_->tier_in_use(); }

Memory::Usage Memory::usage() const { return state_->use(); }

Status Memory::trim() const { return state_->trim(); }

Result<Session> open_session(SessionOptions options, const Memory& memory) {
  if (options.allocator.allocate || options.allocator.release) {
    return make_error(Code::InvalidArgument,
                      "the options already have an allocator: use either an allocator or a memory tier");
  }
  options.allocator = memory.allocator();
  EventCallback own = options.on_event;
  const std::atomic<bool>* const enabled = options.on_event_enabled;
  auto session = Session::open(std::move(options));
  if (!session) return session;
  // Empty if there is no listener but `own`, and that is off. It can be switched on later.
  EventCallback all = session->event_callback();
  if (all) {
    memory.set_event_callback(std::move(all));
  } else {
    memory.set_event_callback(std::move(own), enabled);
  }
  return session;
}

std::string memory_tier_name(const Memory& memory) {
  const std::optional<MemoryTier> tier = memory.tier();
  return tier ? to_string(*tier) : "none";
}

}  // namespace kiln::runtime
