// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kiln/stream.hpp>

#include "element_type.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace kiln::python {

/// A value that keeps its session alive and is destroyed without holding the GIL. If it is the last owner, its
/// destruction ends threads of kiln, and one of them may be calling a Python event callback. The GIL guards it.
template <class T>
class DestroyWithoutGil {
 public:
  explicit DestroyWithoutGil(T value) : value_(std::move(value)) {}
  DestroyWithoutGil(DestroyWithoutGil&& other) noexcept : value_(std::move(other.value_)) { other.value_.reset(); }
  DestroyWithoutGil& operator=(DestroyWithoutGil&&) = delete;
  ~DestroyWithoutGil() { destroy(); }

  /// Destroys the value early. A second call has no effect.
  void destroy() {
    if (!value_) return;
    // Taken out under the GIL: without it, another thread can call this function.
    std::optional<T> last(std::move(value_));
    value_.reset();
    const GilRelease released;
    last.reset();
  }
  T& get() {
    if (!value_) raise({Code::InvalidArgument, "the object was closed", {}});
    return *value_;
  }
  const T& get() const { return const_cast<DestroyWithoutGil*>(this)->get(); }
  bool is_closed() const { return !value_; }

 private:
  std::optional<T> value_;
};

/// Device memory, its backend, and what its elements are. Memory that was allocated by its size has bytes.
struct BufferObject : DestroyWithoutGil<Buffer> {
  BufferObject(Buffer buffer, Backend its_backend, const ElementType& its_element, std::vector<std::size_t> its_shape)
      : DestroyWithoutGil(std::move(buffer)), backend(its_backend), element(its_element), shape(std::move(its_shape)) {}
  Backend backend;
  ElementType element;
  std::vector<std::size_t> shape;
};

/// A stream and its backend.
struct StreamObject : DestroyWithoutGil<Stream> {
  StreamObject(Stream stream, Backend its_backend) : DestroyWithoutGil(std::move(stream)), backend(its_backend) {}
  Backend backend;
};

/// Converts a native handle to a Python number.
inline std::uintptr_t number_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// Returns "CUDA" or "OpenCL".
inline const char* display_name(Backend backend) { return backend == Backend::Cuda ? "CUDA" : "OpenCL"; }

/// Returns the native stream of a Python argument: None, a number, a kiln.Stream, or an object with __cuda_stream__.
/// Raises TypeError for a stream of the other backend.
void* native_stream(nb::handle stream, Backend backend);

/// Converts a Python integer, or an object with __index__, to a number. Raises TypeError for another object and
/// ValueError for a number that is negative or larger than `largest`. `what` names the value.
std::uint64_t whole_number(nb::handle value, const char* what, std::uint64_t largest);

}  // namespace kiln::python
