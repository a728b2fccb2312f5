// SPDX-License-Identifier: Apache-2.0
// Streams and memory, for programs that have none.
#include <utility>

#include "c/api_call.hpp"

namespace kiln::c {
namespace {

Status check_copy(const kiln_buffer* buffer, const char* name, const void* memory, const char* memory_name,
                  std::size_t bytes) {
  if (Status right = check(buffer, name); !right) return right;
  if (bytes == 0) return {};
  if (Status there = check_address(memory, memory_name); !there) return there;
  const std::size_t size = buffer->buffer.size();
  if (bytes <= size) return {};
  return invalid_argument(std::to_string(bytes) + " bytes exceed the " + std::to_string(size) + " bytes of the buffer");
}

}  // namespace
}  // namespace kiln::c

using kiln::Status;
using namespace kiln::c;

kiln_code kiln_stream_new(kiln_session* session, kiln_backend backend, kiln_stream** stream, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(stream, "stream"); !there) return there;
    if (Status right = check(session, "session"); !right) return right;
    const auto meant = backend_of(backend);
    if (!meant) return meant.error();
    auto made = session->session.stream(*meant);
    if (!made) return std::move(made).error();
    *stream = new kiln_stream(*std::move(made));
    return {};
  });
}

void* kiln_stream_native(const kiln_stream* stream) { return is(stream) ? stream->stream.native() : nullptr; }

kiln_code kiln_stream_synchronize(const kiln_stream* stream, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check(stream, "stream"); !right) return right;
    return stream->stream.synchronize();
  });
}

void kiln_stream_free(kiln_stream* stream) { destroy(stream); }

kiln_code kiln_buffer_new(const kiln_stream* stream, const void* from, size_t bytes, kiln_buffer** buffer,
                          kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status there = check_place(buffer, "buffer"); !there) return there;
    if (Status right = check(stream, "stream"); !right) return right;
    if (bytes == 0 || bytes > PTRDIFF_MAX)
      return invalid_argument("a buffer of " + std::to_string(bytes) + " bytes is not possible");
    if (from != nullptr) {
      if (Status there = check_address(from, "from"); !there) return there;
    }
    auto made = from != nullptr ? stream->stream.copy_of(from, bytes) : stream->stream.allocate(bytes);
    if (!made) return std::move(made).error();
    *buffer = new kiln_buffer(stream->stream, *std::move(made));
    return {};
  });
}

kiln_code kiln_buffer_upload(kiln_buffer* to, const void* from, size_t bytes, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check_copy(to, "to", from, "from", bytes); !right) return right;
    return to->stream.upload(to->buffer, from, bytes);
  });
}

kiln_code kiln_buffer_download(void* to, const kiln_buffer* from, size_t bytes, kiln_error** error) {
  return run_call(error, [&]() -> Status {
    if (Status right = check_copy(from, "from", to, "to", bytes); !right) return right;
    return from->stream.download(to, from->buffer, bytes);
  });
}

void* kiln_buffer_native(const kiln_buffer* buffer) { return is(buffer) ? buffer->buffer.native() : nullptr; }

size_t kiln_buffer_bytes(const kiln_buffer* buffer) { return is(buffer) ? buffer->buffer.size() : 0; }

kiln_argument kiln_buffer_argument(const kiln_buffer* buffer) {
  if (!is(buffer)) return {nullptr, 0};
  const kiln::Argument argument = argument_of(buffer->buffer);
  return {argument.data, argument.size};
}

void kiln_buffer_free(kiln_buffer* buffer) { destroy(buffer); }
