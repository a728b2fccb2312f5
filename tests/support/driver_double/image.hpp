#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_driver.hpp"

namespace kiln::test::driver {

/// A parameter of a kernel: where it lies in the parameter block.
struct Parameter {
  std::size_t offset = 0;
  std::size_t size = 0;
};

/// What an image says of one kernel.
struct KernelImage {
  std::string name;
  std::vector<Parameter> parameters;
  std::size_t parameter_bytes = 0;
  unsigned registers = 0;
  std::size_t shared_bytes = 0;  ///< static
  unsigned max_threads = 0;      ///< 0: no limit of its own
};

/// Device code as far as a driver that runs none must know it.
struct Image {
  enum class Kind { Cubin, Ptx };
  Kind kind = Kind::Cubin;
  int architecture = 0;  ///< 80 for sm_80
  bool exact = false;    ///< for this architecture and no other (sm_90a)
  std::vector<KernelImage> kernels;

  /// Whether it runs on a device of this architecture: a cubin with an equal or higher minor of the same major, PTX on
  /// anything newer.
  bool runs_on(int device) const;
};

/// Reads a cubin; every length in it is checked. False for anything else.
bool read_cubin(std::span<const std::uint8_t> bytes, Image& image);

/// The end of the file that an ELF header speaks of, as a driver must find it that is given no length; 0 where the
/// bytes are no such header.
std::size_t cubin_extent(std::span<const std::uint8_t> header);

/// Reads as much of PTX as its directives tell. `newest` is the newest version that is understood, 90 for 9.0.
cuda::DriverResult read_ptx(std::string_view text, int newest, Image& image);

}  // namespace kiln::test::driver
