#pragma once

#include <compare>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "base/dynamic_library.hpp"

namespace kiln {

struct CudaVersion {
  int major = 0;
  int minor = 0;
  friend auto operator<=>(const CudaVersion&, const CudaVersion&) = default;
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

/// An NVRTC that was found on this machine, without opening it.
struct NvrtcCandidate {
  std::string path;      ///< of libnvrtc
  std::string builtins;  ///< of its builtins file, which it opens by itself; empty where there is none
  CudaVersion version;   ///< told by the names of the two files
  std::string found_by;  ///< explicit, mapped, package, CUDA_HOME, system
  bool chosen = false;
  std::string reason;  ///< why it was chosen or passed over
};

/// The CUDA toolkits that the environment names: CUDA_HOME, CUDA_PATH.
std::vector<std::string> named_toolkits();

/// Where to look. `of_this_process` fills it in from the process; tests make up their own.
struct NvrtcSearch {
  std::string explicit_path;                ///< what the configuration names
  std::vector<std::string> mapped;          ///< libraries that are in the process already
  std::string package;                      ///< the folder that holds kiln's package, as PyPI lays packages out
  std::vector<std::string> toolkits;        ///< named_toolkits()
  std::vector<std::string> system_folders;  ///< folders with libraries in them
  std::optional<CudaVersion> driver;        ///< the newest CUDA that the driver knows, where there is a driver

  static NvrtcSearch of_this_process(std::string explicit_path);
};

/// Every NVRTC, in the order of docs/finding-nvrtc.md; at most one is `chosen`. Opens no library.
std::vector<NvrtcCandidate> nvrtc_candidates(const NvrtcSearch& search);

/// The chosen one alone: stops searching as soon as it is known, because every hit of a new process asks.
std::optional<NvrtcCandidate> choose_nvrtc(const NvrtcSearch& search);

/// Calls `visit` with each path under which a library of CUDA's may lie and with what leads there, in the order of
/// docs/finding-nvrtc.md without what is explicit, until it returns false. `library` is `libnvrtc.so` or the like and
/// `package` where CUDA 12's PyPI package of it has it. Whether there is a file is for the visitor to see.
void visit_places(const NvrtcSearch& search, const std::string& library, const char* package,
                  const std::function<bool(const std::string& path, const char* found_by)>& visit);

/// 13 of `/a/libnvrtc.so.13.0` and the library `libnvrtc.so`; 0 where the name does not say.
int major_in_name(const std::string& path, const std::string& library);

/// The newest CUDA version that the installed NVIDIA driver knows, from the kernel module's own words and without
/// opening the driver; nothing where there is no driver.
std::optional<CudaVersion> driver_cuda_version(const std::string& proc_text);

// NVRTC's interface, as far as kiln uses it: declared here from its documentation, so that no header of NVIDIA's is
// needed to build. A program is an opaque pointer, a result an int with 0 for success.
struct NvrtcProgram;

/// An opened libnvrtc. Never closed.
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
  // Null in libraries before 12.8, which have no precompiled headers.
  int (*pch_heap_size)(std::size_t* size) = nullptr;

  CudaVersion version;
  std::vector<int> architectures;  ///< that it compiles for: 90 for sm_90
};

}  // namespace kiln
