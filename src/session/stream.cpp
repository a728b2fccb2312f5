// SPDX-License-Identifier: Apache-2.0
#include <kiln/stream.hpp>

#include <utility>

#include "session/stream_state.hpp"

namespace kiln {

Buffer::Buffer(std::shared_ptr<detail::StreamState> stream, void* memory, std::size_t size)
    : stream_(std::move(stream)), memory_(memory), size_(size) {}

Buffer::Buffer(Buffer&& other) noexcept
    : stream_(std::move(other.stream_)), memory_(std::exchange(other.memory_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(stream_, other.stream_);
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (memory_ != nullptr) (void)stream_->device.release(memory_, size_, stream_->native);
}

void* Stream::native() const { return state_->native; }
Stream::operator StreamRef() const { return StreamRef::from_native(state_->native); }

Result<Buffer> Stream::allocate(std::size_t bytes) const {
  const auto memory = state_->device.allocate(bytes, state_->native);
  if (!memory) return memory.error();
  return Buffer(state_, *memory, bytes);
}

Result<Buffer> Stream::copy_of(const void* from, std::size_t bytes) const {
  auto buffer = allocate(bytes);
  if (!buffer) return buffer;
  if (Status copied = upload(*buffer, from, bytes); !copied) return std::move(copied).error();
  return buffer;
}

Status Stream::upload(const Buffer& to, const void* from, std::size_t bytes) const {
  return state_->device.copy_to_device(to.native(), from, bytes, state_->native);
}

Status Stream::download(void* to, const Buffer& from, std::size_t bytes) const {
  return state_->device.copy_to_host(to, from.native(), bytes, state_->native);
}

Status Stream::synchronize() const { return state_->device.synchronize(state_->native); }

}  // namespace kiln
