#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <kiln/result.hpp>

#include "compile/nvrtc_library.hpp"

namespace kiln {

/// A libnvJitLink that was found on this machine, without opening it.
struct NvJitLinkCandidate {
  std::string path;
  int major = 0;         ///< told by its name; 0 where that does not say
  std::string found_by;  ///< explicit, nvrtc (it lies beside that), mapped, package, CUDA_HOME, system
};

/// The libnvJitLink to use: the explicit one; else the one beside the NVRTC that `search` chooses, because LTO-IR is to
/// be linked by its own toolkit; else the first of that CUDA major in the order of docs/finding-nvrtc.md. Where there
/// is no NVRTC every major will do. Opens no library.
std::optional<NvJitLinkCandidate> choose_nvjitlink(const std::string& explicit_path, const NvrtcSearch& search);

// nvJitLink's interface, as far as kiln uses it: declared here from its documentation, so that no header of NVIDIA's is
// needed to build. A link is an opaque pointer, a result an int with 0 for success.
struct NvJitLinkState;

/// An opened libnvJitLink. Never closed.
struct NvJitLinkLibrary {
  static Result<std::shared_ptr<const NvJitLinkLibrary>> open(const std::string& path);

  // What bytes are said to be.
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
