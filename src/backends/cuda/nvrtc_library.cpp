// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/nvrtc_library.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/process/environment.hpp"
#include "base/text.hpp"

namespace kiln {
namespace {

// Newest first. If one directory contains several, they are listed in this order.
constexpr int kMajors[] = {13, 12};
constexpr int kMaxMinor = 9;
constexpr const char* kNvrtcName = "libnvrtc.so";
constexpr const char* kNvrtcPackage = "/nvidia/cuda_nvrtc/lib";  // of CUDA 12

// Returns true also for a file that cannot be accessed: the digest of the file then fails with the reason. Treating it
// as missing would yield another compiler, one without builtins.
bool may_be_there(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0) return S_ISREG(status.st_mode);
  return errno != ENOENT && errno != ENOTDIR;
}

// Finds libnvrtc-builtins.so.13.<minor>, which libnvrtc.so.13 opens in its own directory. Checking at most ten names is
// cheaper than listing a toolkit directory with hundreds of files. The most common minor versions come first.
void find_builtins(NvrtcCandidate& candidate) {
  const bool is_finished = candidate.version.major <= 12;  // the last minor version of 12 is the common one, and the
                                                           // first of 13
  std::string path =
      parent_path(candidate.path) + "/libnvrtc-builtins.so." + std::to_string(candidate.version.major) + ".";
  path += '0';
  for (int i = 0; i <= kMaxMinor; ++i) {
    const int minor = is_finished ? kMaxMinor - i : i;
    path.back() = static_cast<char>('0' + minor);
    if (!may_be_there(path)) continue;
    candidate.builtins = path;
    candidate.version.minor = minor;
    return;
  }
}

std::optional<NvrtcCandidate> candidate_at(const std::string& path, const char* found_by) {
  if (!stamp_of(path.c_str())) return std::nullopt;
  NvrtcCandidate candidate;
  candidate.path = path;
  candidate.found_via = found_by;
  candidate.version.major = major_in_name(path, "libnvrtc.so");
  if (candidate.version.major == 0) {
    // For `libnvrtc.so` and the like, the builtins file next to it gives the version.
    for (const int major : kMajors) {
      candidate.version = {major, 0};
      find_builtins(candidate);
      if (!candidate.builtins.empty()) break;
    }
  } else {
    find_builtins(candidate);
  }
  return candidate;
}

// Calls `visit` with each candidate in the documented order until it returns false.
void visit_candidates(const NvrtcSearch& search, const std::function<bool(const NvrtcCandidate&)>& visit) {
  const auto visit_file = [&](const std::string& path, const char* found_by) {
    const auto candidate = candidate_at(path, found_by);
    return !candidate || visit(*candidate);
  };
  if (!search.explicit_path.empty() && !visit_file(search.explicit_path, "explicit")) return;
  visit_library_paths(search, kNvrtcName, kNvrtcPackage, visit_file);
}

// Returns true if the candidate is only used if there is no other. Otherwise an active environment would change the
// compiler, and with it all keys, on a machine that has a toolkit.
bool is_last_resort(const NvrtcCandidate& candidate) {
  return candidate.found_via == "prefix" || candidate.found_via == "VIRTUAL_ENV";
}

// Returns true if the candidate is used regardless of the driver's version, because the user or the process chose it.
bool is_decided(const NvrtcCandidate& candidate) {
  return candidate.found_via == "explicit" || candidate.found_via == "mapped";
}

}  // namespace

int major_in_name(const std::string& path, const std::string& library) {
  const std::string name = file_name(path);
  int major = 0;
  if (name.starts_with(library + ".")) {
    std::from_chars(name.data() + library.size() + 1, name.data() + name.size(), major);
  }
  return major;
}

std::optional<CudaVersion> driver_cuda_version(const std::string& proc_text) {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun …": the branch determines the CUDA version.
  static constexpr std::pair<int, CudaVersion> kBranches[] = {
      {590, {13, 1}}, {580, {13, 0}}, {575, {12, 9}}, {570, {12, 8}}, {565, {12, 7}}, {560, {12, 6}},
      {555, {12, 5}}, {550, {12, 4}}, {545, {12, 3}}, {535, {12, 2}}, {530, {12, 1}}, {525, {12, 0}}};
  const std::size_t at = proc_text.find("Kernel Module");
  if (at == std::string::npos) return std::nullopt;
  const std::size_t digit = proc_text.find_first_of("0123456789", at);
  if (digit == std::string::npos) return std::nullopt;
  int branch = 0;
  std::from_chars(proc_text.data() + digit, proc_text.data() + proc_text.size(), branch);
  for (const auto& [first, version] : kBranches) {
    if (branch >= first) return version;
  }
  return CudaVersion{11, 8};
}

std::vector<std::string> named_toolkits() {
  std::vector<std::string> directories;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const auto value = environment_variable(variable); value && !value->empty()) directories.push_back(*value);
  }
  return directories;
}

NvrtcSearch NvrtcSearch::of_this_process(std::string explicit_path) {
  NvrtcSearch search;
  search.explicit_path = std::move(explicit_path);
  search.mapped = mapped_libraries();
  search.packages = PackageDirectories::of_this_process();
  search.toolkits = named_toolkits();
  const std::string library_path = environment_variable("LD_LIBRARY_PATH").value_or("");
  for (const std::string_view directory : split(library_path, ':')) {
    if (!directory.empty()) search.system_directories.emplace_back(directory);
  }
  for (const char* directory : {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                "/usr/lib64", "/usr/lib", "/opt/cuda/lib64"}) {
    search.system_directories.emplace_back(directory);
  }
  // Checks the device node first: a failed lookup under /proc costs twice as much.
  if (access("/dev/nvidiactl", F_OK) == 0) {
    const auto text = read_file("/proc/driver/nvidia/version");
    if (text && *text) search.driver = driver_cuda_version(std::string((*text)->view()));
  }
  return search;
}

void visit_library_paths(const NvrtcSearch& search, const std::string& library, const char* package,
                         const std::function<bool(const std::string&, const char*)>& visit) {
  const auto in_directory = [&](const std::string& directory, const char* found_by) {
    return std::all_of(std::begin(kMajors), std::end(kMajors), [&](int major) {
      return visit(directory + "/" + library + "." + std::to_string(major), found_by);
    });
  };
  for (const std::string& path : search.mapped) {
    if (file_name(path).starts_with(library) && !visit(path, "mapped")) return;
  }
  const auto in_package = [&](const std::string& directory, const char* found_by) {
    if (directory.empty() || !is_directory(directory + "/nvidia")) return true;
    return in_directory(directory + "/nvidia/cu13/lib", found_by) && in_directory(directory + package, found_by);
  };
  if (!in_package(search.packages.own, "package")) return;
  for (const std::string& toolkit : search.toolkits) {
    for (const char* layout : {"/lib64", "/lib", "/targets/x86_64-linux/lib", "/targets/sbsa-linux/lib"}) {
      if (!in_directory(toolkit + layout, "CUDA_HOME")) return;
    }
  }
  for (const std::string& directory : search.system_directories) {
    if (!in_directory(directory, "system")) return;
  }
  for (const PackageDirectory& each : search.packages.installed) {
    if (!in_package(each.path, each.found_by)) return;
  }
}

std::vector<SearchedPlace> nvrtc_places(const NvrtcSearch& search) {
  std::vector<SearchedPlace> places;
  if (!search.explicit_path.empty()) {
    const bool found = stamp_of(search.explicit_path.c_str()).has_value();
    places.push_back({"explicit", search.explicit_path, found ? "found" : "no such file"});
  }
  visit_library_paths(search, kNvrtcName, kNvrtcPackage, [&](const std::string& path, const char* found_by) {
    std::string directory = parent_path(path);
    const bool found = stamp_of(path.c_str()).has_value();
    if (places.empty() || places.back().path != directory) {
      const char* const missing =
          is_directory(directory) ? "has no libnvrtc.so.13 or libnvrtc.so.12" : "does not exist";
      places.push_back({found_by, std::move(directory), missing});
    }
    if (found) places.back().result = "has " + file_name(path);
    return true;
  });
  std::vector<PackageDirectory> packages = search.packages.installed;
  if (!search.packages.own.empty()) packages.push_back({search.packages.own, "package"});
  for (const PackageDirectory& each : packages) {
    if (!is_directory(each.path + "/nvidia")) places.push_back({each.found_by, each.path, "has no directory nvidia"});
  }
  for (const PackageDirectory& each : search.packages.skipped) {
    places.push_back({each.found_by, each.path, "skipped: " + each.reason});
  }
  return places;
}

std::vector<NvrtcCandidate> nvrtc_candidates(const NvrtcSearch& search) {
  std::vector<NvrtcCandidate> all;
  visit_candidates(search, [&](const NvrtcCandidate& candidate) {
    // Several directories can be links to one toolkit.
    const auto stamp = stamp_of(candidate.path.c_str());
    const bool known =
        std::any_of(all.begin(), all.end(), [&](const NvrtcCandidate& c) { return stamp_of(c.path.c_str()) == stamp; });
    if (!known) all.push_back(candidate);
    return true;
  });
  const auto chosen = choose_nvrtc(search);
  for (NvrtcCandidate& candidate : all) {
    if (chosen && candidate.path == chosen->path) {
      candidate.chosen = true;
      candidate.reason = chosen->reason;
    } else if (search.driver && candidate.version > *search.driver) {
      candidate.reason = "newer than the driver, which supports CUDA " + search.driver->text();
    } else {
      candidate.reason = "skipped: another one comes first in the search order";
    }
  }
  return all;
}

std::optional<NvrtcCandidate> choose_nvrtc(const NvrtcSearch& search) {
  // A configured library is used or reported missing; it is not replaced by another one.
  if (!search.explicit_path.empty() && !stamp_of(search.explicit_path.c_str())) return std::nullopt;
  std::optional<NvrtcCandidate> best;
  visit_candidates(search, [&](const NvrtcCandidate& candidate) {
    if (is_decided(candidate)) {
      best = candidate;
      best->reason =
          candidate.found_via == "explicit" ? "named by the configuration" : "the process has already loaded it";
      return false;
    }
    if (!search.driver) {
      best = candidate;
      best->reason =
          "the first in the search order (found by " + candidate.found_via + "), no driver limits the version";
      return false;
    }
    if (best && is_last_resort(candidate)) return false;
    const bool fits = candidate.version <= *search.driver;
    const bool best_fits = best && best->version <= *search.driver;
    if (!best || (fits && (!best_fits || candidate.version > best->version))) {
      best = candidate;
      best->reason = fits ? "the newest that the driver, which supports CUDA " + search.driver->text() + ", can load"
                          : "newer than the driver supports, but there is no other";
    }
    return true;
  });
  return best;
}

int nvrtc_major(const std::string& explicit_path) {
  const auto chosen = choose_nvrtc(NvrtcSearch::of_this_process(explicit_path));
  return chosen ? chosen->version.major : 0;
}

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcLibrary::open(const std::string& path) {
  const Result<DynamicLibrary> opened = DynamicLibrary::open(path);
  if (!opened) return opened.error();
  const DynamicLibrary& library = *opened;
  auto nvrtc = std::make_shared<NvrtcLibrary>();
  const bool complete =
      library.bind(nvrtc->error_string, "nvrtcGetErrorString") && library.bind(nvrtc->get_version, "nvrtcVersion") &&
      library.bind(nvrtc->supported_arch_count, "nvrtcGetNumSupportedArchs") &&
      library.bind(nvrtc->supported_archs, "nvrtcGetSupportedArchs") &&
      library.bind(nvrtc->create, "nvrtcCreateProgram") && library.bind(nvrtc->destroy, "nvrtcDestroyProgram") &&
      library.bind(nvrtc->add_name, "nvrtcAddNameExpression") &&
      library.bind(nvrtc->lowered_name, "nvrtcGetLoweredName") && library.bind(nvrtc->compile, "nvrtcCompileProgram") &&
      library.bind(nvrtc->log_size, "nvrtcGetProgramLogSize") && library.bind(nvrtc->log, "nvrtcGetProgramLog") &&
      library.bind(nvrtc->cubin_size, "nvrtcGetCUBINSize") && library.bind(nvrtc->cubin, "nvrtcGetCUBIN") &&
      library.bind(nvrtc->ptx_size, "nvrtcGetPTXSize") && library.bind(nvrtc->ptx, "nvrtcGetPTX") &&
      library.bind(nvrtc->ltoir_size, "nvrtcGetLTOIRSize") && library.bind(nvrtc->ltoir, "nvrtcGetLTOIR");
  if (!complete) {
    return make_error(Code::Unsupported, path + " lacks functions that kiln needs; install NVRTC 12.0 or newer");
  }
  (void)(library.bind(nvrtc->pch_heap_size, "nvrtcGetPCHHeapSize") &&
         library.bind(nvrtc->set_pch_heap_size, "nvrtcSetPCHHeapSize") &&
         library.bind(nvrtc->pch_heap_required, "nvrtcGetPCHHeapSizeRequired") &&
         library.bind(nvrtc->pch_create_status, "nvrtcGetPCHCreateStatus"));
  nvrtc->get_version(&nvrtc->version.major, &nvrtc->version.minor);
  int count = 0;
  nvrtc->supported_arch_count(&count);
  nvrtc->architectures.resize(static_cast<std::size_t>(std::max(count, 0)));
  nvrtc->supported_archs(nvrtc->architectures.data());
  return std::shared_ptr<const NvrtcLibrary>(std::move(nvrtc));
}

}  // namespace kiln
