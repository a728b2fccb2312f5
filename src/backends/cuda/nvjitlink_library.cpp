// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/nvjitlink_library.hpp"

#include "base/error.hpp"
#include "base/files/files.hpp"

namespace kiln {
namespace {

constexpr const char* kLibrary = "libnvJitLink.so";

}  // namespace

std::optional<NvJitLinkCandidate> choose_nvjitlink(const std::string& explicit_path, const NvrtcSearch& search) {
  std::optional<NvJitLinkCandidate> found;
  const auto take = [&](const std::string& path, const char* found_by) {
    if (stamp_of(path.c_str())) found = {path, major_in_name(path, kLibrary), found_by};
    return !found;
  };
  if (!explicit_path.empty()) {
    // A configured library is used or reported missing; it is not replaced by another one.
    (void)take(explicit_path, "explicit");
    return found;
  }
  const std::optional<NvrtcCandidate> nvrtc = choose_nvrtc(search);
  if (nvrtc) {
    const std::string name = std::string("/") + kLibrary + "." + std::to_string(nvrtc->version.major);
    if (!take(parent_path(nvrtc->path) + name, "nvrtc")) return found;
  }
  visit_library_paths(search, kLibrary, "/nvidia/nvjitlink/lib", [&](const std::string& path, const char* found_by) {
    if (nvrtc && major_in_name(path, kLibrary) != nvrtc->version.major) return true;
    return take(path, found_by);
  });
  return found;
}

Result<std::shared_ptr<const NvJitLinkLibrary>> NvJitLinkLibrary::open(const std::string& path) {
  const Result<DynamicLibrary> opened = DynamicLibrary::open(path);
  if (!opened) return opened.error();
  const DynamicLibrary& library = *opened;
  auto linker = std::make_shared<NvJitLinkLibrary>();
  // Each function also exists under a versioned name (__nvJitLinkCreate_13_0). Every version has the plain names.
  const bool complete =
      library.bind(linker->get_version, "nvJitLinkVersion") && library.bind(linker->create, "nvJitLinkCreate") &&
      library.bind(linker->destroy, "nvJitLinkDestroy") && library.bind(linker->add_data, "nvJitLinkAddData") &&
      library.bind(linker->complete, "nvJitLinkComplete") &&
      library.bind(linker->cubin_size, "nvJitLinkGetLinkedCubinSize") &&
      library.bind(linker->cubin, "nvJitLinkGetLinkedCubin") &&
      library.bind(linker->ptx_size, "nvJitLinkGetLinkedPtxSize") &&
      library.bind(linker->ptx, "nvJitLinkGetLinkedPtx") &&
      library.bind(linker->error_log_size, "nvJitLinkGetErrorLogSize") &&
      library.bind(linker->error_log, "nvJitLinkGetErrorLog") &&
      library.bind(linker->info_log_size, "nvJitLinkGetInfoLogSize") &&
      library.bind(linker->info_log, "nvJitLinkGetInfoLog");
  if (!complete) {
    return make_error(Code::Unsupported, path + " lacks functions that kiln needs; install nvJitLink 12.4 or newer");
  }
  unsigned major = 0;
  unsigned minor = 0;
  linker->get_version(&major, &minor);
  linker->version = {static_cast<int>(major), static_cast<int>(minor)};
  return std::shared_ptr<const NvJitLinkLibrary>(std::move(linker));
}

}  // namespace kiln
