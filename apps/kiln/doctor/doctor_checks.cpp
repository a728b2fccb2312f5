// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/doctor/doctor_checks.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "apps/kiln/output/console.hpp"
#include "backends/cuda/nvrtc_library.hpp"
#include "base/process/dynamic_library.hpp"
#include "base/process/environment.hpp"
#include "session/components.hpp"
#include "worker/pch_cache.hpp"
#include "worker/sandbox.hpp"
#include "worker/worker_pool.hpp"

namespace kiln::cli {
namespace {

using State = DoctorCheck::State;

// Lists where NVRTC was searched, and the next step for this environment.
void describe_missing_nvrtc(const NvrtcSearch& search, DoctorCheck& finding) {
  finding.details.push_back({"found_by", "place", "result"});
  for (const SearchedPlace& each : nvrtc_places(search)) {
    finding.details.push_back({each.found_by, each.path, each.result});
  }
  const std::string environment = environment_variable("VIRTUAL_ENV").value_or("");
  if (environment.empty()) finding.details.push_back({"VIRTUAL_ENV", "", "not set: no virtual environment is active"});
  if (named_toolkits().empty()) finding.details.push_back({"CUDA_HOME", "", "not set"});
  if (!search.explicit_path.empty()) {
    finding.advice = "correct the setting nvrtc (KILN_NVRTC), or remove it to search for NVRTC";
  } else if (!environment.empty() && search.packages.own.empty()) {
    finding.advice = "install it into the active environment ('" + environment +
                     "/bin/python -m pip install nvidia-cuda-nvrtc'), install the CUDA toolkit, or set "
                     "KILN_NVRTC=/path/to/libnvrtc.so.13";
  } else if (!search.packages.own.empty()) {
    finding.advice = "install it next to kiln, into " + search.packages.own +
                     " ('pip install nvidia-cuda-nvrtc' with the pip of that environment), install the CUDA toolkit, "
                     "or set KILN_NVRTC=/path/to/libnvrtc.so.13";
  } else {
    finding.advice =
        "if pip has installed it, activate its virtual environment or set KILN_NVRTC=/path/to/libnvrtc.so.13; "
        "otherwise install the CUDA toolkit, or 'pip install nvidia-cuda-nvrtc' into a virtual environment and "
        "activate it";
  }
}

}  // namespace

DoctorCheck check_nvrtc(const Config& config, bool& found) {
  DoctorCheck finding{State::Ok, "NVRTC", {}, {}, {}};
  const NvrtcSearch search = NvrtcSearch::of_this_process(config.nvrtc);
  const std::vector<NvrtcCandidate> candidates = nvrtc_candidates(search);
  const auto chosen = std::find_if(candidates.begin(), candidates.end(), [](const auto& c) { return c.chosen; });
  found = false;
  if (chosen == candidates.end()) {
    finding.state = State::Problem;
    finding.text = search.explicit_path.empty()
                       ? "not found: CUDA C++ cannot be compiled"
                       : "the configured " + search.explicit_path + " does not exist: CUDA C++ cannot be compiled";
    describe_missing_nvrtc(search, finding);
    return finding;
  }
  finding.details.push_back({"version", "found_by", "path", "why"});
  for (const NvrtcCandidate& each : candidates) {
    finding.details.push_back(
        {each.version.text() + (each.chosen ? " *" : ""), each.found_via, each.path, each.reason});
  }
  const auto library = NvrtcLibrary::open(chosen->path);
  if (!library) {
    finding.state = State::Problem;
    finding.text = chosen->path + " was selected but cannot be opened: " + library.error().message;
    finding.advice = "repair it, or select another one with KILN_NVRTC=/path";
    return finding;
  }
  found = true;
  finding.text = "CUDA C++ is compiled with NVRTC " + (*library)->version.text() + ", " + chosen->path;
  finding.advice = candidates.size() > 1 ? "to use another one, set KILN_NVRTC=/path" : "nothing to do";
  return finding;
}

DoctorCheck check_driver() {
  struct stat status;
  const bool node = stat("/dev/nvidiactl", &status) == 0;
  const bool device = stat("/dev/nvidia0", &status) == 0;
  const bool library = DynamicLibrary::open("libcuda.so.1").has_value();
  DoctorCheck finding{State::Ok, "NVIDIA driver", {}, {}, {}};
  if (node && device && library) {
    finding.text = "present: CUDA kernels can be launched";
    finding.advice = "nothing to do";
    return finding;
  }
  finding.state = State::Info;
  std::string missing;
  if (!library) missing += "libcuda.so.1";
  if (!node || !device) missing += (missing.empty() ? "" : " and ") + std::string("/dev/nvidia*");
  finding.text = "missing (" + missing + "): CUDA kernels cannot be launched; compiling them needs no driver";
  finding.advice = library || node
                       ? "the installation is incomplete: start a container with the NVIDIA runtime (--gpus all)"
                       : "not needed on a build machine; to launch kernels, install the driver or start the "
                         "container with --gpus all";
  return finding;
}

DoctorCheck check_worker(const Config& config) {
  const std::string path = find_worker(config.worker_path);
  DoctorCheck finding{State::Ok, "worker", {}, {}, {}};
  if (path.empty() || access(path.c_str(), X_OK) != 0) {
    finding.state = State::Problem;
    finding.text = (path.empty() ? "kiln-worker was not found" : path + " cannot be run") +
                   ": units that include headers are compiled every time and not cached";
    finding.advice = "install kiln completely, or set KILN_WORKER=/path/to/kiln-worker";
    return finding;
  }
  const unsigned jobs = config.jobs.value_or(recommended_workers());
  finding.text = jobs == 0 ? "not used: units are compiled in the process of the program (jobs = 0)"
                           : path + ", at most " + std::to_string(jobs) + " at a time on this host";
  finding.details.push_back({"what", "value"});
  finding.details.push_back({"memory limit", format_bytes(config.worker_memory) + " per worker (worker.memory)"});
  finding.details.push_back(
      {"time limit", std::to_string(config.worker_time_limit.count()) + " s per compile (worker.time_limit)"});
  finding.details.push_back({"sandbox", config.worker_sandbox ? available_sandbox().text() : "off (worker.sandbox)"});
  finding.advice = "nothing to do";
  return finding;
}

DoctorCheck check_headers(const Config& config) {
  DoctorCheck finding{State::Ok, "headers", {}, {}, {}};
  std::string failure_reason;
  const std::string root = config.cache_path.empty() ? std::string() : config.cache_path.front();
  const auto options = pch_cache_options(config, root, &failure_reason);
  if (!options) {
    finding.state = State::Info;
    finding.text = "not used, each unit parses its headers: " + failure_reason;
    finding.advice = "only useful if many units share large headers; docs/explanation/precompiled-headers.md";
    return finding;
  }
  const bool is_nameless = options->storage == PchCache::Options::Storage::Nameless;
  const bool is_in_memory = options->storage == PchCache::Options::Storage::Memory;
  finding.details.push_back({"what", "value"});
  if (is_nameless) {
    finding.text =
        "headers that units share are parsed once in each process, because this container has no volume for "
        "the cache: files without a name in " +
        options->directory;
    finding.details.push_back({"size", "at most " + format_bytes(options->max_bytes) + " in each process"});
    finding.advice = "nothing to do; a cache on a volume keeps them for other processes, KILN_PCH=off disables them";
    return finding;
  }
  const PchCache::Usage usage = make_pch_cache(*options)->usage();
  finding.text =
      "headers that units share are parsed once on this host, even with address randomization: " + options->directory +
      (is_in_memory ? " (in memory)" : "");
  finding.details.push_back({"files", std::to_string(usage.files)});
  finding.details.push_back({"size", format_bytes(usage.bytes) + " of at most " + format_bytes(options->max_bytes)});
  finding.advice = "nothing to do; KILN_PCH=off disables them";
  return finding;
}

DoctorCheck check_configuration(const Config& config, const std::vector<std::string>& warnings) {
  DoctorCheck finding{State::Ok, "configuration", {}, {}, {}};
  if (!warnings.empty()) {
    finding.state = State::Problem;
    finding.text = std::to_string(warnings.size()) + (warnings.size() == 1 ? " warning" : " warnings");
    finding.details.push_back({"warning"});
    for (const std::string& warning : warnings) finding.details.push_back({warning});
    finding.advice = "fix the settings named above; docs/reference/configuration.md lists all settings";
    return finding;
  }
  const auto set = std::count_if(config.settings.begin(), config.settings.end(), [](const Setting& setting) {
    return setting.origin != "default" && !setting.origin.starts_with("cache.");
  });
  if (config.disable || !config.may_compile) {
    finding.state = State::Info;
    finding.text = config.disable ? "kiln is disabled (disable): every unit is compiled every time"
                                  : "compiling is disabled (compile = never): a cache miss is an error";
    finding.advice = "'kiln config show' prints the source of the setting";
    return finding;
  }
  finding.text = set == 0 ? "all defaults" : std::to_string(set) + " set by files or variables, no warnings";
  finding.advice = "'kiln config show' prints each value and its source";
  return finding;
}

}  // namespace kiln::cli
