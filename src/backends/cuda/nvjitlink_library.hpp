// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <kiln/result.hpp>

#include "backends/cuda/nvrtc_library.hpp"

namespace kiln {

/// A libnvJitLink on this machine, found without opening it.
struct NvJitLinkCandidate {
  std::string path;
  int major = 0;          ///< major version from its name; 0 if the name has none
  std::string found_via;  ///< explicit, nvrtc (next to it), mapped, package, CUDA_HOME, system, prefix, VIRTUAL_ENV
};

/// Returns the libnvJitLink to use: the explicit one; otherwise the one next to the NVRTC that `search` chooses,
/// because LTO-IR must be linked by its own toolkit; otherwise the first one of that CUDA major version in the order of
/// docs/how-to/install.md. If there is no NVRTC, any major version is accepted. Opens no library.
std::optional<NvJitLinkCandidate> choose_nvjitlink(const std::string& explicit_path, const NvrtcSearch& search);

// The part of nvJitLink's interface that kiln uses. It is declared here from the documentation, so that the build needs
// no NVIDIA headers. A link is an opaque pointer. A result is an int; 0 means success.
struct NvJitLinkState;

/// A loaded libnvJitLink. It is never unloaded.
struct NvJitLinkLibrary {
  static Result<std::shared_ptr<const NvJitLinkLibrary>> open(const std::string& path);

  // Input types.
  static constexpr int kCubin = 1;
  static constexpr int kPtx = 2;
  static constexpr int kLtoIr = 3;

  int (*get_version)(unsigned* major, unsigned* minor) = nullptr;
  int (*create)(NvJitLinkState** link, std::uint32_t options, const char* const* texts) = nullptr;
  int (*destroy)(NvJitLinkState** link) = nullptr;
  int (*add_data)(NvJitLinkState* link, int kind, const void* data, std::size_t size, const char* name) = nullptr;
  int (*complete)(NvJitLinkState* link) = nullptr;
  int (*cubin_size)(NvJitLinkState* link, std::size_t* size) = nullptr;
  int (*cubin)(NvJitLinkState* link, void* bytes) = nullptr;
  int (*ptx_size)(NvJitLinkState* link, std::size_t* size) = nullptr;
  int (*ptx)(NvJitLinkState* link, char* text) = nullptr;
  int (*error_log_size)(NvJitLinkState* link, std::size_t* size) = nullptr;
  int (*error_log)(NvJitLinkState* link, char* text) = nullptr;
  int (*info_log_size)(NvJitLinkState* link, std::size_t* size) = nullptr;
  int (*info_log)(NvJitLinkState* link, char* text) = nullptr;

  CudaVersion version;
};

}  // namespace kiln
