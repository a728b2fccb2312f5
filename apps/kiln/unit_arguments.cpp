#include "apps/kiln/unit_arguments.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "apps/kiln/opencl.hpp"
#include "base/error.hpp"
#include "base/files.hpp"

namespace kiln::cli {
namespace {

Error usage(std::string message) { return failure(Code::InvalidArgument, std::move(message)); }

Result<std::string> read_standard_input() {
  std::string text;
  char block[65536];
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failure("cannot read", "standard input", errno);
    if (got == 0) return text;
    text.append(block, static_cast<std::size_t>(got));
  }
}

Result<std::string> read_source(const std::string& file) {
  if (file == "-") return read_standard_input();
  const Result<std::optional<Bytes>> bytes = read_file(file);
  if (!bytes) return bytes.error();
  if (!*bytes) return failure(Code::Io, "there is no file " + file);
  return std::string((*bytes)->view());
}

std::string base_name(const std::string& file) { return file.substr(file.rfind('/') + 1); }

bool is_opencl(const Arguments& arguments, const std::string& file) {
  return arguments.backend.empty() ? file.ends_with(".cl") : arguments.backend == "opencl";
}

// DIR=FILE, each for a folder that -I names.
Result<std::map<std::string, std::string>> seals_of(const Arguments& arguments) {
  std::map<std::string, std::string> seals;
  for (const std::string& text : arguments.seals) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return usage("--seal takes DIR=FILE, not '" + text + "'");
    }
    const std::string folder = text.substr(0, equals);
    const auto& folders = arguments.include_folders;
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) {
      return usage("--seal " + text + ": there is no -I " + folder);
    }
    seals[folder] = text.substr(equals + 1);
  }
  return seals;
}

Result<Unit> unit_of(const Arguments& arguments, const std::string& file,
                     const std::map<std::string, std::string>& seals) {
  Result<std::string> source = read_source(file);
  if (!source) return source.error();
  const bool opencl = is_opencl(arguments, file);
  const bool beside = !opencl && file != "-" && has_quoted_include(*source);
  const std::string name = !arguments.name.empty() ? arguments.name : file == "-" ? "stdin" : base_name(file);
  Unit unit = opencl ? Unit::opencl(name, std::move(*source)) : Unit::cuda(name, std::move(*source));
  for (const std::string& entry : arguments.entries) unit = unit.entry(entry);
  if (beside) unit = unit.include_root(folder_of(file));
  for (const std::string& folder : arguments.include_folders) {
    const auto seal = seals.find(folder);
    unit = unit.include_root(folder, seal == seals.end() ? std::string() : seal->second);
  }
  for (const std::string& definition : arguments.definitions) unit = unit.option("-D" + definition);
  return unit.options(arguments.options);
}

Result<std::vector<Target>> cuda_targets(const Arguments& arguments) {
  if (arguments.architectures.empty()) return usage("say for which GPUs to compile, for example --arch sm_80,sm_90");
  std::vector<Target> targets;
  for (const std::string& text : arguments.architectures) {
    Result<Target> target = Target::parse(text);
    if (!target) return target.error();
    if (std::find(targets.begin(), targets.end(), *target) == targets.end()) targets.push_back(std::move(*target));
  }
  return targets;
}

}  // namespace

bool has_quoted_include(std::string_view source) {
  constexpr std::string_view kBlanks = " \t";
  const auto skip_blanks = [&](std::size_t at) {
    return std::min(source.find_first_not_of(kBlanks, at), source.size());
  };
  for (std::size_t at = source.find('#'); at != std::string_view::npos; at = source.find('#', at + 1)) {
    const std::size_t word = skip_blanks(at + 1);
    if (source.substr(word, 7) != "include") continue;
    const std::size_t quote = skip_blanks(word + 7);
    if (quote < source.size() && source[quote] == '"') return true;
  }
  return false;
}

Result<std::vector<Job>> jobs_of(const Arguments& arguments) {
  const auto seals = seals_of(arguments);
  if (!seals) return seals.error();
  if (!arguments.name.empty() && arguments.files.size() > 1) return usage("--name is for one file");
  std::vector<Job> jobs;
  for (const std::string& file : arguments.files) {
    Result<std::vector<Target>> targets = std::vector<Target>();
    if (!is_opencl(arguments, file)) {
      targets = cuda_targets(arguments);
    } else if (!arguments.architectures.empty() && arguments.files.size() == 1) {
      return usage("--arch is for CUDA; OpenCL is compiled for the default device");
    } else {
      const Result<Target> device = default_opencl_target();
      if (!device) return device.error();
      targets->push_back(*device);
    }
    if (!targets) return targets.error();
    const Result<Unit> unit = unit_of(arguments, file, *seals);
    if (!unit) return unit.error();
    for (Target& target : *targets) jobs.push_back({file, *unit, std::move(target)});
  }
  return jobs;
}

}  // namespace kiln::cli
