#include <kiln/runtime/memory.hpp>

#include <utility>

#include "base/error.hpp"
#include "runtime/memory_state.hpp"

namespace kiln::runtime {

Memory::Memory(MemoryOptions options) : state_(std::make_shared<State>(std::move(options))) {}

Allocator Memory::allocator() const {
  Allocator made;
  made.allocate = [state = state_](std::size_t bytes, void* stream) { return state->allocate(bytes, stream); };
  made.release = [state = state_](void* memory, std::size_t /*bytes*/, void* stream) {
    state->release(memory, stream);
  };
  made.why = [] { return State::why(); };
  made.kind = "cuda";
  return made;
}

void Memory::tell(EventCallback listeners) const { state_->tell(std::move(listeners)); }

MemoryTier Memory::backend() const { return state_->backend(); }

Memory::Use Memory::use() const { return state_->use(); }

Status Memory::trim() const { return state_->trim(); }

Result<Session> open_session(SessionOptions options, const Memory& memory) {
  if (options.allocator.allocate || options.allocator.release) {
    return failure(Code::InvalidArgument, "the options have an allocator already: give that, or a memory tier");
  }
  options.allocator = memory.allocator();
  auto session = Session::open(std::move(options));
  if (session) memory.tell(session->listeners());
  return session;
}

std::string memory_backend(const Memory& memory) { return to_string(memory.backend()); }

}  // namespace kiln::runtime
