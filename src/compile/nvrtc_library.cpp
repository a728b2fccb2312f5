#include "compile/nvrtc_library.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace kiln {
namespace {

// Newest first: where one folder has several, that is the order in which they are listed.
constexpr int kMajors[] = {13, 12};
constexpr int kMostMinor = 9;

// What cannot be looked at counts as there: whoever digests it then says why not, where a compiler without its builtins
// would be another compiler.
bool may_be_there(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0) return S_ISREG(status.st_mode);
  return errno != ENOENT && errno != ENOTDIR;
}

// libnvrtc.so.13 opens libnvrtc-builtins.so.13.<minor> beside it; asking for ten names at most is cheaper than listing
// a toolkit's folder, which has hundreds. The minors that are common today are asked for first.
void find_builtins(NvrtcCandidate& candidate) {
  const bool is_finished = candidate.version.major <= 12;  // the last of 12 is the common one, of 13 the first
  std::string path =
      folder_of(candidate.path) + "/libnvrtc-builtins.so." + std::to_string(candidate.version.major) + ".";
  path += '0';
  for (int i = 0; i <= kMostMinor; ++i) {
    const int minor = is_finished ? kMostMinor - i : i;
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
  candidate.found_by = found_by;
  candidate.version.major = major_in_name(path, "libnvrtc.so");
  if (candidate.version.major == 0) {
    // `libnvrtc.so` and the like: whichever builtins lie beside it tell the version.
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
  visit_places(search, "libnvrtc.so", "/nvidia/cuda_nvrtc/lib", visit_file);
}

// Whether the candidate is taken without looking at the driver's version: somebody has decided already.
bool is_decided(const NvrtcCandidate& candidate) {
  return candidate.found_by == "explicit" || candidate.found_by == "mapped";
}

}  // namespace

int major_in_name(const std::string& path, const std::string& library) {
  const std::string name = name_in_folder(path);
  int major = 0;
  if (name.starts_with(library + ".")) {
    std::from_chars(name.data() + library.size() + 1, name.data() + name.size(), major);
  }
  return major;
}

std::optional<CudaVersion> driver_cuda_version(const std::string& proc_text) {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun …": the branch tells the CUDA version.
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
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const auto value = environment_variable(variable); value && !value->empty()) folders.push_back(*value);
  }
  return folders;
}

NvrtcSearch NvrtcSearch::of_this_process(std::string explicit_path) {
  NvrtcSearch search;
  search.explicit_path = std::move(explicit_path);
  search.mapped = mapped_libraries();
  // kiln's wheel is site-packages/kiln, beside site-packages/nvidia.
  search.package = folder_of(folder_of(path_of_code(reinterpret_cast<const void*>(&driver_cuda_version))));
  search.toolkits = named_toolkits();
  const std::string library_path = environment_variable("LD_LIBRARY_PATH").value_or("");
  for (const std::string_view folder : split(library_path, ':')) {
    if (!folder.empty()) search.system_folders.emplace_back(folder);
  }
  for (const char* folder : {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                             "/usr/lib64", "/usr/lib", "/opt/cuda/lib64"}) {
    search.system_folders.emplace_back(folder);
  }
  // The device node first: a missing file under /proc costs twice as much to miss.
  if (access("/dev/nvidiactl", F_OK) == 0) {
    const auto text = read_file("/proc/driver/nvidia/version");
    if (text && *text) search.driver = driver_cuda_version(std::string((*text)->view()));
  }
  return search;
}

void visit_places(const NvrtcSearch& search, const std::string& library, const char* package,
                  const std::function<bool(const std::string&, const char*)>& visit) {
  const auto in_folder = [&](const std::string& folder, const char* found_by) {
    return std::all_of(std::begin(kMajors), std::end(kMajors), [&](int major) {
      return visit(folder + "/" + library + "." + std::to_string(major), found_by);
    });
  };
  for (const std::string& path : search.mapped) {
    if (name_in_folder(path).starts_with(library) && !visit(path, "mapped")) return;
  }
  if (!search.package.empty() && is_folder(search.package + "/nvidia")) {
    for (const char* layout : {"/nvidia/cu13/lib", package}) {
      if (!in_folder(search.package + layout, "package")) return;
    }
  }
  for (const std::string& toolkit : search.toolkits) {
    for (const char* layout : {"/lib64", "/lib", "/targets/x86_64-linux/lib", "/targets/sbsa-linux/lib"}) {
      if (!in_folder(toolkit + layout, "CUDA_HOME")) return;
    }
  }
  for (const std::string& folder : search.system_folders) {
    if (!in_folder(folder, "system")) return;
  }
}

std::vector<NvrtcCandidate> nvrtc_candidates(const NvrtcSearch& search) {
  std::vector<NvrtcCandidate> all;
  visit_candidates(search, [&](const NvrtcCandidate& candidate) {
    // One toolkit is reached by several folders that are links to each other.
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
      candidate.reason = "newer than the driver, which knows CUDA " + search.driver->text();
    } else {
      candidate.reason = "passed over: another comes first in the order";
    }
  }
  return all;
}

std::optional<NvrtcCandidate> choose_nvrtc(const NvrtcSearch& search) {
  // What somebody named is used or reported missing; another one in its place would be a surprise.
  if (!search.explicit_path.empty() && !stamp_of(search.explicit_path.c_str())) return std::nullopt;
  std::optional<NvrtcCandidate> best;
  visit_candidates(search, [&](const NvrtcCandidate& candidate) {
    if (is_decided(candidate)) {
      best = candidate;
      best->reason =
          candidate.found_by == "explicit" ? "named by the configuration" : "the process has it open already";
      return false;
    }
    if (!search.driver) {
      best = candidate;
      best->reason = "the first in the order (found by " + candidate.found_by + "), no driver limits the version";
      return false;
    }
    const bool fits = candidate.version <= *search.driver;
    const bool best_fits = best && best->version <= *search.driver;
    if (!best || (fits && (!best_fits || candidate.version > best->version))) {
      best = candidate;
      best->reason = fits ? "the newest that the driver, which knows CUDA " + search.driver->text() + ", can load"
                          : "newer than the driver knows, but there is no other";
    }
    return true;
  });
  return best;
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
    return failure(Code::Unsupported, path + " lacks functions that kiln needs; NVRTC 12.0 or newer is wanted");
  }
  (void)library.bind(nvrtc->pch_heap_size, "nvrtcGetPCHHeapSize");
  nvrtc->get_version(&nvrtc->version.major, &nvrtc->version.minor);
  int count = 0;
  nvrtc->supported_arch_count(&count);
  nvrtc->architectures.resize(static_cast<std::size_t>(std::max(count, 0)));
  nvrtc->supported_archs(nvrtc->architectures.data());
  return std::shared_ptr<const NvrtcLibrary>(std::move(nvrtc));
}

}  // namespace kiln
