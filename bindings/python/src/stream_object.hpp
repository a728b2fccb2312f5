#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <kiln/kernel.hpp>

#include "errors.hpp"
#include "gate.hpp"

namespace kiln::python {

/// A value that keeps its session: where it is the last to do so, its end ends threads of kiln's, of which one may be
/// telling Python of an event. So it ends without the interpreter.
template <class T>
class EndsOutside {
 public:
  explicit EndsOutside(T value) : value_(std::move(value)) {}
  EndsOutside(EndsOutside&& other) noexcept : value_(std::move(other.value_)) { other.value_.reset(); }
  EndsOutside& operator=(EndsOutside&&) = delete;
  ~EndsOutside() { end(); }

  /// Ends it before its time; harmless twice.
  void end() {
    if (!value_) return;
    const Released released;
    value_.reset();
  }
  T& get() {
    if (!value_) raise({Code::InvalidArgument, "it was closed", {}});
    return *value_;
  }
  const T& get() const { return const_cast<EndsOutside*>(this)->get(); }

 private:
  std::optional<T> value_;
};

using BufferObject = EndsOutside<Buffer>;

/// A stream and of which kind it is.
struct StreamObject : EndsOutside<Stream> {
  StreamObject(Stream stream, std::string its_kind) : EndsOutside(std::move(stream)), kind(std::move(its_kind)) {}
  std::string kind;
};

/// A native handle as Python has it.
inline std::uintptr_t number_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// The native stream of what Python calls one: None, a number, a kiln.Stream, or whatever has __cuda_stream__.
void* native_stream(nb::handle stream);

}  // namespace kiln::python
