#include <kiln/runtime/memory.hpp>

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

void Memory::set_event_callback(EventCallback listeners) const { state_->emit(std::move(listeners)); }

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
  auto session = Session::open(std::move(options));
  if (session) memory.set_event_callback(session->event_callback());
  return session;
}

std::string memory_tier_name(const Memory& memory) {
  const std::optional<MemoryTier> tier = memory.tier();
  return tier ? to_string(*tier) : "none";
}

}  // namespace kiln::runtime
