// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "backends/cuda/package_directories.hpp"
#include "base/process/dynamic_library.hpp"

namespace kiln {

struct CudaVersion {
  int major = 0;
  int minor = 0;
  friend auto operator<=>(const CudaVersion&, const CudaVersion&) = default;
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

/// An NVRTC on this machine, found without opening it.
struct NvrtcCandidate {
  std::string path;       ///< path of libnvrtc
  std::string builtins;   ///< path of its builtins file, which it opens by itself; empty if there is none
  CudaVersion version;    ///< version from the names of the two files
  std::string found_via;  ///< explicit, mapped, package, CUDA_HOME, system, prefix, VIRTUAL_ENV
  bool chosen = false;
  std::string reason;  ///< why it was chosen or skipped
};

/// Returns the CUDA toolkits that the environment names: CUDA_HOME, CUDA_PATH.
std::vector<std::string> named_toolkits();

/// The search locations. `of_this_process` reads them from the process; tests set their own.
struct NvrtcSearch {
  std::string explicit_path;                    ///< path from the configuration
  std::vector<std::string> mapped;              ///< libraries that the process has already loaded
  PackageDirectories packages;                  ///< in PyPI's layout; those in `installed` come last
  std::vector<std::string> toolkits;            ///< named_toolkits()
  std::vector<std::string> system_directories;  ///< library directories
  std::optional<CudaVersion> driver;  ///< newest CUDA version that the driver supports; empty without a driver

  static NvrtcSearch of_this_process(std::string explicit_path);
};

/// Returns every NVRTC in the order of docs/how-to/install.md. At most one is `chosen`. Opens no library.
std::vector<NvrtcCandidate> nvrtc_candidates(const NvrtcSearch& search);

/// Returns only the chosen NVRTC. Stops the search as soon as it is known, because the first hit of every process needs
/// it.
std::optional<NvrtcCandidate> choose_nvrtc(const NvrtcSearch& search);
/// Returns the CUDA major version of the NVRTC that this process chooses; 0 if there is none. `explicit_path` is the
/// setting nvrtc.
int nvrtc_major(const std::string& explicit_path);

/// A directory or file of the search for NVRTC and what is there, for reports.
struct SearchedPlace {
  std::string found_by;  ///< as in NvrtcCandidate::found_via
  std::string path;
  std::string result;
};
/// Returns every place of the search, with the result for each.
std::vector<SearchedPlace> nvrtc_places(const NvrtcSearch& search);

/// Calls `visit` with each path at which a CUDA library may be located and with the reason for that path, in the order
/// of docs/how-to/install.md without the explicit path, until `visit` returns false. `library` is `libnvrtc.so` or the
/// like. `package` is its directory in CUDA 12's PyPI package. The visitor checks whether the file exists.
void visit_library_paths(const NvrtcSearch& search, const std::string& library, const char* package,
                         const std::function<bool(const std::string& path, const char* found_by)>& visit);

/// Returns the major version in a name: 13 for `/a/libnvrtc.so.13.0` and the library `libnvrtc.so`; 0 if the name has
/// none.
int major_in_name(const std::string& path, const std::string& library);

/// Returns the newest CUDA version that the installed NVIDIA driver supports, from the text of the kernel module and
/// without opening the driver; nothing if there is no driver.
std::optional<CudaVersion> driver_cuda_version(const std::string& proc_text);

// The part of NVRTC's interface that kiln uses. It is declared here from the documentation, so that the build needs no
// NVIDIA headers. A program is an opaque pointer. A result is an int; 0 means success.
struct NvrtcProgram;

/// A loaded libnvrtc. It is never unloaded.
struct NvrtcLibrary {
  static Result<std::shared_ptr<const NvrtcLibrary>> open(const std::string& path);

  const char* (*error_string)(int) = nullptr;
  int (*get_version)(int* major, int* minor) = nullptr;
  int (*supported_arch_count)(int* count) = nullptr;
  int (*supported_archs)(int* archs) = nullptr;
  int (*create)(NvrtcProgram** program, const char* source, const char* name, int headers, const char* const* contents,
                const char* const* names) = nullptr;
  int (*destroy)(NvrtcProgram** program) = nullptr;
  int (*add_name)(NvrtcProgram* program, const char* expression) = nullptr;
  int (*lowered_name)(NvrtcProgram* program, const char* expression, const char** name) = nullptr;
  int (*compile)(NvrtcProgram* program, int options, const char* const* texts) = nullptr;
  int (*log_size)(NvrtcProgram* program, std::size_t* size) = nullptr;
  int (*log)(NvrtcProgram* program, char* text) = nullptr;
  int (*cubin_size)(NvrtcProgram* program, std::size_t* size) = nullptr;
  int (*cubin)(NvrtcProgram* program, char* bytes) = nullptr;
  int (*ptx_size)(NvrtcProgram* program, std::size_t* size) = nullptr;
  int (*ptx)(NvrtcProgram* program, char* bytes) = nullptr;
  int (*ltoir_size)(NvrtcProgram* program, std::size_t* size) = nullptr;
  int (*ltoir)(NvrtcProgram* program, char* bytes) = nullptr;
  // Null in versions before 12.8, which have no precompiled headers. The heap is memory of the process; setting its
  // size frees it, and the next program that needs it allocates it again.
  int (*pch_heap_size)(std::size_t* size) = nullptr;
  int (*set_pch_heap_size)(std::size_t size) = nullptr;
  int (*pch_heap_required)(NvrtcProgram* program, std::size_t* size) = nullptr;
  int (*pch_create_status)(NvrtcProgram* program) = nullptr;
  static constexpr int kPchHeapExhausted = 14;  ///< NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED

  bool has_pch() const { return pch_heap_size != nullptr && pch_create_status != nullptr; }

  CudaVersion version;
  std::vector<int> architectures;  ///< supported architectures: 90 for sm_90
};

}  // namespace kiln
