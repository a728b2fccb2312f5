#include "apps/kiln/examine.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "apps/kiln/console.hpp"
#include "base/dynamic_library.hpp"
#include "compile/nvrtc_library.hpp"
#include "compile/pch_shelf.hpp"
#include "compile/worker_pool.hpp"
#include "session/toolbox.hpp"

namespace kiln::cli {
namespace {

using State = Finding::State;

}  // namespace

Finding examine_nvrtc(const Config& config, bool& found) {
  Finding finding{State::Good, "NVRTC", {}, {}, {}};
  const std::vector<NvrtcCandidate> candidates = nvrtc_candidates(NvrtcSearch::of_this_process(config.nvrtc));
  const auto chosen = std::find_if(candidates.begin(), candidates.end(), [](const auto& c) { return c.chosen; });
  found = false;
  if (!candidates.empty()) finding.details.push_back({"version", "found_by", "path", "why"});
  for (const NvrtcCandidate& each : candidates) {
    finding.details.push_back({each.version.text() + (each.chosen ? " *" : ""), each.found_by, each.path, each.reason});
  }
  if (chosen == candidates.end()) {
    finding.state = State::Problem;
    finding.text = candidates.empty() ? "none was found: CUDA C++ cannot be compiled"
                                      : "none of those found can be used: CUDA C++ cannot be compiled";
    finding.advice = "install it (pip install nvidia-cuda-nvrtc, or the CUDA toolkit), or name one: KILN_NVRTC=/path";
    return finding;
  }
  const auto library = NvrtcLibrary::open(chosen->path);
  if (!library) {
    finding.state = State::Problem;
    finding.text = chosen->path + " was chosen and cannot be opened: " + library.error().message;
    finding.advice = "repair it, or name another: KILN_NVRTC=/path";
    return finding;
  }
  found = true;
  finding.text = "CUDA C++ is compiled with NVRTC " + (*library)->version.text() + ", " + chosen->path;
  finding.advice = candidates.size() > 1 ? "to use another one: KILN_NVRTC=/path" : "nothing to do";
  return finding;
}

Finding examine_driver() {
  struct stat status;
  const bool node = stat("/dev/nvidiactl", &status) == 0;
  const bool device = stat("/dev/nvidia0", &status) == 0;
  const bool library = DynamicLibrary::open("libcuda.so.1").ok();
  Finding finding{State::Good, "NVIDIA driver", {}, {}, {}};
  if (node && device && library) {
    finding.text = "present: CUDA kernels can be launched";
    finding.advice = "nothing to do";
    return finding;
  }
  finding.state = State::Note;
  std::string missing;
  if (!library) missing += "libcuda.so.1";
  if (!node || !device) missing += (missing.empty() ? "" : " and ") + std::string("/dev/nvidia*");
  finding.text = "missing (" + missing + "): compiling CUDA works, launching CUDA kernels does not";
  finding.advice = library || node
                       ? "half of it is there: in a container, start it with the NVIDIA runtime (--gpus all)"
                       : "fine on a build machine; to launch kernels, install the driver or start the "
                         "container with --gpus all";
  return finding;
}

Finding examine_worker(const Config& config) {
  const std::string path = find_worker(config.worker);
  Finding finding{State::Good, "worker", {}, {}, {}};
  if (path.empty() || access(path.c_str(), X_OK) != 0) {
    finding.state = State::Problem;
    finding.text = (path.empty() ? "kiln-worker was not found" : path + " cannot be run") +
                   ": units that include headers are compiled each time and not kept";
    finding.advice = "install kiln whole, or name the program: KILN_WORKER=/path/to/kiln-worker";
    return finding;
  }
  const unsigned jobs = config.jobs.value_or(workers_now());
  finding.text = jobs == 0 ? "not used: everything is compiled in the program's own process (jobs = 0)"
                           : path + ", at most " + std::to_string(jobs) + " at once on this host";
  finding.details.push_back({"what", "value"});
  finding.details.push_back({"memory of one", size_text(config.worker_memory) + " at most (worker.memory)"});
  finding.details.push_back(
      {"time of a compile", std::to_string(config.worker_time_limit.count()) + " s at most (worker.time_limit)"});
  finding.advice = "nothing to do";
  return finding;
}

Finding examine_headers(const Config& config) {
  Finding finding{State::Good, "headers", {}, {}, {}};
  std::string why_not;
  const std::string root = config.cache_path.empty() ? std::string() : config.cache_path.front();
  const auto options = pch_shelf_of(config, root, &why_not);
  if (!options) {
    finding.state = State::Note;
    finding.text = "each unit's are parsed again: " + why_not;
    finding.advice = "fine unless many units share large headers; docs/precompiled-headers.md";
    return finding;
  }
  const PchShelf::Usage usage = PchShelf(*options).usage();
  finding.text = "those that units share are parsed once on this host, whatever it randomises: " + options->folder;
  finding.details.push_back({"what", "value"});
  finding.details.push_back({"files", std::to_string(usage.files)});
  finding.details.push_back({"size", size_text(usage.bytes) + " of at most " + size_text(options->size_bound)});
  finding.advice = "nothing to do; KILN_PCH=off switches them off";
  return finding;
}

Finding examine_configuration(const Config& config, const std::vector<std::string>& warnings) {
  Finding finding{State::Good, "configuration", {}, {}, {}};
  if (!warnings.empty()) {
    finding.state = State::Problem;
    finding.text = std::to_string(warnings.size()) + (warnings.size() == 1 ? " warning" : " warnings");
    finding.details.push_back({"warning"});
    for (const std::string& warning : warnings) finding.details.push_back({warning});
    finding.advice = "correct what they name; docs/configuration.md lists the settings";
    return finding;
  }
  const auto set = std::count_if(config.settings.begin(), config.settings.end(), [](const Setting& setting) {
    return setting.origin != "default" && !setting.origin.starts_with("cache.");
  });
  if (config.disable || !config.may_compile) {
    finding.state = State::Note;
    finding.text = config.disable ? "kiln is switched off (disable): everything is compiled each time"
                                  : "compiling is switched off (compile = never): a miss is an error";
    finding.advice = "'kiln config show' says where that was set";
    return finding;
  }
  finding.text = set == 0 ? "all defaults" : std::to_string(set) + " set by files or variables, no warnings";
  finding.advice = "'kiln config show' prints each value and where it came from";
  return finding;
}

}  // namespace kiln::cli
