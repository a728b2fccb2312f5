#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <deque>
#include <vector>

#include <kiln/kernel.hpp>

namespace kiln::python {

namespace nb = nanobind;

/// Contiguous host memory of a Python object, not copied: by the buffer protocol, otherwise by DLPack. Valid for the
/// lifetime of this object. The GIL must be held to create and destroy it.
class HostSpan {
 public:
  /// Raises TypeError if the object has no host memory, if it is not contiguous, or, for `writable`, if it is
  /// read-only.
  HostSpan(nb::handle object, bool writable);
  ~HostSpan();
  HostSpan(const HostSpan&) = delete;
  HostSpan& operator=(const HostSpan&) = delete;

  void* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  void take_dlpack(nb::handle object, bool writable);

  Py_buffer view_{};
  nb::object owner_;  // owner of a DLPack tensor
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The arguments of a launch: their values, and the objects that must live until the launch has started.
class Arguments {
 public:
  /// `sizes` are the parameter sizes of the kernel in bytes; empty if unknown.
  Arguments(const nb::args& args, const std::vector<std::size_t>& sizes);

  const Argument* data() const { return list_.data(); }
  std::size_t size() const { return list_.size(); }
  /// Returns true if an argument is a number whose size only the kernel's parameters determine.
  static bool ask_for_sizes(const nb::args& args);

 private:
  void add(nb::handle value, std::size_t size);
  void add_integer(nb::handle value, std::size_t size);
  void add_float(nb::handle value, std::size_t size);
  bool add_device_memory(nb::handle value);
  bool add_plain_bytes(nb::handle value);
  void keep(const void* bytes, std::size_t size);

  std::deque<std::vector<unsigned char>> values_;
  std::vector<nb::object> owners_;
  std::vector<Argument> list_;
};

}  // namespace kiln::python
