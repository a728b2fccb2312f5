// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/compile/unit_arguments.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "backends/cuda/cuda_device.hpp"
#include "backends/opencl/opencl_library.hpp"
#include "base/error.hpp"
#include "core/compatibility.hpp"
#include "session/config/source_unit.hpp"

namespace kiln::cli {
namespace {

Error usage(std::string message) { return make_error(Code::InvalidArgument, std::move(message)); }

Result<std::string> read_standard_input() {
  std::string text;
  char block[65536];
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("cannot read", "standard input", errno);
    if (got == 0) return text;
    text.append(block, static_cast<std::size_t>(got));
  }
}

bool is_opencl(const Arguments& arguments, const std::string& file) {
  return arguments.backend.empty() ? is_opencl_file(file) : arguments.backend == "opencl";
}

// Parses the DIR=FILE options. Each DIR must be given with -I.
Result<std::map<std::string, std::string>> sentinels_of(const Arguments& arguments) {
  std::map<std::string, std::string> sentinels;
  for (const std::string& text : arguments.sentinels) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return usage("--sentinel takes DIR=FILE, not '" + text + "'");
    }
    const std::string directory = text.substr(0, equals);
    const auto& directories = arguments.include_directories;
    if (std::find(directories.begin(), directories.end(), directory) == directories.end()) {
      return usage("--sentinel " + text + ": missing -I " + directory);
    }
    sentinels[directory] = text.substr(equals + 1);
  }
  return sentinels;
}

Result<Unit> unit_of(const Arguments& arguments, const std::string& file,
                     const std::map<std::string, std::string>& sentinels) {
  SourceUnit unit;
  unit.file = file == "-" ? "stdin" : file;
  unit.name = arguments.name;
  unit.opencl = is_opencl(arguments, file);
  unit.entries = arguments.entries;
  for (const std::string& directory : arguments.include_directories) {
    const auto sentinel = sentinels.find(directory);
    unit.include_roots.push_back({directory, sentinel == sentinels.end() ? std::string() : sentinel->second});
  }
  for (const std::string& definition : arguments.definitions) unit.options.push_back("-D" + definition);
  unit.options.insert(unit.options.end(), arguments.options.begin(), arguments.options.end());
  if (file != "-") return read_unit(unit);
  Result<std::string> text = read_standard_input();
  if (!text) return text.error();
  return make_unit(unit, std::move(*text), false);
}

// Parses an architecture as users write it: `sm_90`, `sm90` and `90` are the same, as are `compute_90` and `compute90`.
Result<Target> parse_architecture(const std::string& text) {
  const std::size_t digits = text.find_first_of("0123456789");
  if (digits == std::string::npos) return Target::parse(text);
  const std::string prefix = text.substr(0, digits);
  Result<Target> target = Target::parse(prefix.empty() ? "sm_" + text : prefix + '_' + text.substr(digits));
  return target ? target : Target::parse(text);
}

// Returns the targets of the CUDA devices of this machine.
Result<std::vector<Target>> device_targets(const Config& config) {
  const auto devices = CudaDevice({config.driver, {}}).devices();
  if (!devices) return devices.error();
  std::vector<Target> targets;
  for (const DeviceInfo& device : *devices) targets.push_back(device.target);
  return targets;
}

// As above, with an error if there is none.
Result<std::vector<Target>> native_targets() {
  const auto devices = device_targets(Config::load({}, {}));
  if (devices && !devices->empty()) return devices;
  const std::string reason = devices ? "the driver reports no device" : devices.error().message;
  return make_error(Code::Unavailable, "--arch native found no CUDA device: " + reason.substr(0, reason.find("; ")) +
                                           "; name the architecture, for example --arch sm_90");
}

// Returns the targets of the command line, otherwise those of the manifest.
Result<std::vector<Target>> cuda_targets(const Arguments& arguments, const Manifest& manifest) {
  if (!arguments.architectures.empty()) return given_targets(arguments);
  if (!manifest.architectures.empty()) return manifest.architectures;
  return usage("no architecture is given: add one, for example --arch sm_80,sm_90, or --arch native");
}

// Returns the target of the default OpenCL device.
Result<std::vector<Target>> opencl_target() {
  const auto devices = opencl_devices();
  if (!devices) return devices.error();
  return std::vector<Target>{devices->front().target};
}

// Returns the specs of --cccl: a predefined spec by its name, all of them, or a spec as JSON.
Result<std::vector<cccl::Spec>> specs_of(const Arguments& arguments) {
  std::vector<cccl::Spec> specs;
  for (const std::string& text : arguments.cccl) {
    if (text == "all") {
      specs.insert(specs.end(), cccl::predefined_specs().begin(), cccl::predefined_specs().end());
      continue;
    }
    Result<cccl::Spec> spec =
        text.find('{') != std::string::npos ? cccl::Spec::parse(text) : cccl::find_predefined(text);
    if (!spec) return usage("--cccl: " + spec.error().message);
    specs.push_back(std::move(*spec));
  }
  return specs;
}

// The list of jobs that the arguments request.
class JobList {
 public:
  JobList(const Arguments& arguments, const Manifest& manifest) : arguments_(arguments), manifest_(manifest) {}

  Status add_file(const std::string& file, const std::map<std::string, std::string>& sentinels) {
    const bool opencl = is_opencl(arguments_, file);
    if (opencl && !arguments_.architectures.empty() && arguments_.files.size() == 1 && arguments_.cccl.empty() &&
        arguments_.manifest.empty()) {
      return usage("--arch is for CUDA; OpenCL is compiled for the default device");
    }
    return add(file, unit_of(arguments_, file, sentinels), opencl);
  }
  Status add_spec(const cccl::Spec& spec) {
    const Result<std::vector<Target>> targets = cuda_targets(arguments_, manifest_);
    if (!targets) return targets.error();
    const Unit unit = spec.for_targets(*targets).unit();
    return add(unit.name(), unit, false);
  }
  Status add_member(const Manifest::UnitEntry& member) {
    if (member.spec) return add_spec(*member.spec);
    const Result<std::vector<Unit>> units = read_units(member.source);
    if (!units) return units.error();
    Status added;
    for (const Unit& unit : *units) {
      if (added) added = add(job_file(member.source, unit), unit, member.source.opencl);
    }
    return added;
  }
  std::vector<Job> take() { return std::move(jobs_); }

 private:
  Status add(const std::string& file, const Result<Unit>& unit, bool opencl) {
    if (!unit) return unit.error();
    Result<std::vector<Target>> targets = opencl ? opencl_target() : cuda_targets(arguments_, manifest_);
    if (!targets) return targets.error();
    for (Target& target : *targets) jobs_.push_back({file, *unit, std::move(target)});
    return {};
  }

  const Arguments& arguments_;
  const Manifest& manifest_;
  std::vector<Job> jobs_;
};

}  // namespace

std::string job_file(const SourceUnit& source, const Unit& unit) {
  return source.instances.empty() ? source.file : source.file + ':' + unit.entries().front();
}

Result<std::vector<Target>> given_targets(const Arguments& arguments) {
  std::vector<Target> targets;
  const auto add = [&](const Target& target) {
    if (std::find(targets.begin(), targets.end(), target) == targets.end()) targets.push_back(target);
  };
  for (const std::string& text : arguments.architectures) {
    if (text == "native") {
      const Result<std::vector<Target>> devices = native_targets();
      if (!devices) return devices.error();
      for (const Target& device : *devices) add(device);
      continue;
    }
    const Result<Target> target = parse_architecture(text);
    if (!target) return target.error();
    add(*target);
  }
  return targets;
}

DeviceLimit DeviceLimit::of(const Arguments& arguments, const Config& config) {
  DeviceLimit limit;
  const bool publishes = !config.remote_signing_key.empty() && config.remote_certificate.empty();
  if (!arguments.architectures.empty() || publishes) return limit;
  if (auto devices = device_targets(config)) limit.devices_ = std::move(*devices);
  return limit;
}

bool DeviceLimit::admits(const Target& target) const {
  const Form form = target.form;
  if (devices_.empty() || (form != Form::Cubin && form != Form::Ptx && form != Form::Cccl)) return true;
  return std::any_of(devices_.begin(), devices_.end(), [&](Target device) {
    if (form == Form::Cccl) device.form = Form::Cccl;
    return compatibility_rank(target, device).has_value();
  });
}

std::string DeviceLimit::text() const {
  std::string text;
  for (const Target& device : devices_) text += (text.empty() ? "" : ", ") + device.name();
  return text;
}

Result<std::vector<Job>> jobs_of(const Arguments& arguments) {
  if (arguments.files.empty() && arguments.cccl.empty() && arguments.manifest.empty())
    return usage("nothing to compile: give files, --cccl NAME or --manifest kiln.toml");
  Result<Manifest> manifest = arguments.manifest.empty() ? Manifest() : read_manifest(arguments.manifest);
  if (!manifest) return manifest.error();
  return jobs_of(arguments, *manifest);
}

Result<std::vector<Job>> jobs_of(const Arguments& arguments, const Manifest& manifest) {
  const auto sentinels = sentinels_of(arguments);
  if (!sentinels) return sentinels.error();
  if (!arguments.name.empty() && arguments.files.size() != 1) return usage("--name requires exactly one file");
  const auto specs = specs_of(arguments);
  if (!specs) return specs.error();

  JobList jobs(arguments, manifest);
  Status status;
  // Algorithms first, because they take longest.
  for (const cccl::Spec& spec : *specs) {
    if (status) status = jobs.add_spec(spec);
  }
  for (const Manifest::UnitEntry& member : manifest.members) {
    if (status) status = jobs.add_member(member);
  }
  for (const std::string& file : arguments.files) {
    if (status) status = jobs.add_file(file, *sentinels);
  }
  if (!status) return status.error();
  return jobs.take();
}

}  // namespace kiln::cli
