// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/cuda_driver_abi.hpp"

namespace kiln::test::driver {

/// A kernel parameter and its location in the parameter block.
struct Parameter {
  std::size_t offset = 0;
  std::size_t size = 0;
};

/// The description of one kernel in an image.
struct KernelImage {
  std::string name;
  std::vector<Parameter> parameters;
  std::size_t parameter_bytes = 0;
  unsigned registers = 0;
  std::size_t shared_bytes = 0;  ///< static shared memory in bytes
  unsigned max_threads = 0;      ///< 0 means no limit of its own
};

/// The part of device code that a driver needs that does not run it.
struct Image {
  enum class Kind { Cubin, Ptx };
  Kind kind = Kind::Cubin;
  int architecture = 0;  ///< 80 for sm_80
  bool exact = false;    ///< for this architecture only (sm_90a)
  std::vector<KernelImage> kernels;

  /// Returns whether it runs on a device of this architecture: a cubin on an equal or higher minor version of the same
  /// major version, PTX on anything newer.
  bool runs_on(int device) const;
};

/// Reads a cubin and checks every length in it. Returns false for anything else.
bool read_cubin(std::span<const std::uint8_t> bytes, Image& image);

/// Returns the file size according to an ELF header, which a driver needs because it gets no length. Returns 0 if the
/// bytes are not such a header.
std::size_t cubin_extent(std::span<const std::uint8_t> header);

/// Reads the directives of PTX. `newest` is the newest supported version, 90 for 9.0.
cuda::DriverResult read_ptx(std::string_view text, int newest, Image& image);

}  // namespace kiln::test::driver
