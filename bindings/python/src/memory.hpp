#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <deque>
#include <vector>

#include <kiln/kernel.hpp>

namespace kiln::python {

namespace nb = nanobind;

/// Memory of the host that a Python object has, in one piece and not copied: by the buffer protocol, else by DLPack. It
/// is good for as long as this lives. Made and ended by whoever holds the interpreter.
class HostSpan {
 public:
  /// Raises TypeError where the object has none, or not in one piece, or, for `writable`, only to be read.
  HostSpan(nb::handle object, bool writable);
  ~HostSpan();
  HostSpan(const HostSpan&) = delete;
  HostSpan& operator=(const HostSpan&) = delete;

  void* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  void take_dlpack(nb::handle object, bool writable);

  Py_buffer view_{};
  nb::object owner_;  // of a DLPack tensor
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The arguments of a launch: their values, and what must live until it has begun.
class Arguments {
 public:
  /// `sizes` are the bytes of the kernel's parameters; empty where nobody knows.
  Arguments(const nb::args& args, const std::vector<std::size_t>& sizes);

  const Argument* data() const { return list_.data(); }
  std::size_t size() const { return list_.size(); }
  /// Whether one of them is a number whose size the kernel must tell.
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
