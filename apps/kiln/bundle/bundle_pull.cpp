// SPDX-License-Identifier: Apache-2.0
// kiln bundle pull: copies, with skopeo, the images of `kiln bundle oci --by-arch` that the devices of a machine use.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "apps/kiln/bundle/bundle_files.hpp"
#include "apps/kiln/bundle/render_bundle_json.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/compile/unit_arguments.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/output.hpp"
#include "backends/command/command_runner.hpp"
#include "backends/command/command_toolchain.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/files/temporary_directory.hpp"
#include "base/process/environment.hpp"
#include "bundle/bundle_split.hpp"
#include "bundle/oci_manifest.hpp"

namespace kiln::cli {
namespace {

constexpr std::chrono::minutes kListTimeout{1};
constexpr const char* kPartial = ".kiln-pull-";

// The name of an image as skopeo takes it: `docker://host:5000/kernels` and `7`, or `oci:app.oci` and `latest`.
struct ImageName {
  std::string repository;
  std::string tag;

  bool is_layout() const { return repository.starts_with("oci:"); }
  std::string with(const std::string& part) const { return repository + ':' + tag + '-' + part; }
};

Result<ImageName> parse_image_name(const std::string& text) {
  const bool is_known = text.starts_with("docker://") || text.starts_with("oci:");
  const std::size_t colon = text.rfind(':');
  const std::size_t slash = text.rfind('/');
  const bool has_tag = colon != std::string::npos && (slash == std::string::npos || colon > slash) && colon > 4;
  const std::string tag = has_tag ? text.substr(colon + 1) : std::string();
  if (!is_known || !is_oci_reference(tag)) {
    return make_error(Code::InvalidArgument, "'" + text +
                                                 "' is not the name of an image with a tag; use "
                                                 "docker://REGISTRY/NAME:TAG or oci:DIR:NAME");
  }
  return ImageName{text.substr(0, colon), tag};
}

Result<Process::SpawnOptions> skopeo_command(const Arguments& arguments, std::vector<std::string> command) {
  Process::SpawnOptions start;
  const std::string program = find_program("skopeo", environment_variable("PATH").value_or(""));
  if (program.empty()) {
    return make_error(Code::Unavailable, "skopeo was not found in PATH; install the package skopeo");
  }
  start.arguments = {program};
  start.arguments.insert(start.arguments.end(), arguments.program.begin(), arguments.program.end());
  start.arguments.insert(start.arguments.end(), command.begin(), command.end());
  start.environment = current_environment();
  return start;
}

// Returns the names of the images next to `image`.
Result<std::vector<std::string>> names_beside(const Arguments& arguments, const ImageName& image) {
  if (image.is_layout()) {
    const std::string path = join_path(image.repository.substr(4), kOciIndexFile);
    const std::optional<FileStamp> stamp = stamp_of(path.c_str());
    if (!stamp) return make_error(Code::Io, "there is no image layout " + image.repository.substr(4));
    if (stamp->size > kMaxOciJsonBytes) return make_error(Code::Corrupt, path + " is larger than 4 MiB");
    const Result<std::optional<Bytes>> text = read_file(path);
    if (!text) return text.error();
    if (!*text) return make_error(Code::Io, path + " does not exist any more");
    const Result<std::vector<OciDescriptor>> images = parse_oci_index((*text)->view());
    if (!images) return make_error(images.error().code, path + ": " + images.error().message);
    std::vector<std::string> names;
    for (const OciDescriptor& each : *images) names.push_back(each.reference);
    return names;
  }
  const Result<Process::SpawnOptions> start = skopeo_command(arguments, {"list-tags", image.repository});
  if (!start) return start.error();
  const Result<CommandRunner::RunResult> ran = CommandRunner().run(*start, kListTimeout);
  if (!ran) return ran.error();
  if (!ran->exit.succeeded()) {
    return make_error(Code::Io, "skopeo cannot list the tags of " + image.repository, ran->output);
  }
  // Warnings can precede the list.
  const std::size_t begin = std::min(ran->output.find('{'), ran->output.size());
  return parse_oci_tags(std::string_view(ran->output).substr(begin, ran->output.rfind('}') + 1 - begin));
}

// Returns the parts that the devices use, without duplicates.
Result<std::vector<std::string>> choose_parts(const Arguments& arguments, const ImageName& image) {
  Arguments asked = arguments;
  if (asked.architectures.empty()) asked.architectures = {"native"};
  const Result<std::vector<Target>> targets = given_targets(asked);
  if (!targets) return targets.error();
  const Result<std::vector<std::string>> names = names_beside(arguments, image);
  if (!names) return names.error();
  std::vector<std::string> parts;
  for (const std::string& name : *names) {
    if (name.starts_with(image.tag + '-')) parts.push_back(name.substr(image.tag.size() + 1));
  }
  std::set<std::string> chosen;
  for (const Target& target : *targets) {
    const std::optional<std::size_t> best = best_part(parts, target);
    if (!best) {
      return make_error(Code::Unavailable, image.repository + " has no image '" + image.tag + "-…' for " +
                                               target.name() +
                                               " (it has: " + (parts.empty() ? "none" : join_strings(parts)) +
                                               "); write them with 'kiln bundle oci --by-arch'");
    }
    chosen.insert(parts[*best]);
  }
  return std::vector<std::string>(chosen.begin(), chosen.end());
}

Status copy_image(const Arguments& arguments, const std::string& from, const std::string& directory) {
  Result<Process::SpawnOptions> start =
      skopeo_command(arguments, {"copy", "--all", "--preserve-digests", from, "oci:" + directory + ":latest"});
  if (!start) return start.error();
  if (arguments.quiet || arguments.json) start->arguments.push_back("--quiet");
  start->descriptors = {{STDERR_FILENO, STDOUT_FILENO}};  // standard output is reserved for the result
  start->new_session = false;                             // Ctrl-C must reach both processes
  Result<Process> process = Process::spawn(*start);
  if (!process) return process.error();
  std::optional<Process::Exit> exit;
  while (!exit) exit = process->wait(std::chrono::hours(1));
  if (exit->succeeded()) return {};
  return make_error(Code::Io, "skopeo cannot copy " + from + "; its message is above");
}

std::uint64_t layout_size(const std::string& directory) {
  const std::string blobs = join_path(directory, kOciBlobs);
  std::uint64_t bytes = 0;
  for (const std::string& name : list_directory(AT_FDCWD, blobs.c_str())) {
    if (const auto stamp = stamp_of(join_path(blobs, name).c_str())) bytes += stamp->size;
  }
  return bytes;
}

/// The directory into which images are copied until all of them are complete. It is removed with its files, so that a
/// command that failed can be repeated; the next one removes what a killed one left. Not thread-safe.
class PartialOutput {
 public:
  /// Creates it beside `output`, or in it if it exists: an empty directory can be a mount point, which nothing
  /// replaces.
  static Result<PartialOutput> create(const std::string& given) {
    const std::string tidy = normalize_path(given);
    const std::string output = tidy.empty() ? "." : tidy;
    const bool is_inside = is_directory(output);
    if (is_inside ? !is_unused(output) : exists(output)) {
      return make_error(Code::InvalidArgument,
                        given + " is not an empty directory: name a directory that does not exist yet");
    }
    if (Status made = is_inside ? Status() : make_directories(parent_path(output), 0755); !made) return made.error();
    const std::string prefix = is_inside ? join_path(output, kPartial) : output + kPartial;
    TemporaryDirectory::remove_stale(prefix);
    Result<TemporaryDirectory> directory = TemporaryDirectory::make(prefix);
    if (!directory) return directory.error();
    return PartialOutput(output, is_inside, *std::move(directory));
  }

  /// Returns the directory that becomes the output. It does not exist yet.
  std::string content() const { return join_path(directory_.path(), "content"); }

  /// Gives the content its final name.
  Status publish() const {
    if (!is_inside_) return move(content(), output_);
    std::vector<std::string> names = list_directory(AT_FDCWD, content().c_str());
    // Last, because a layout without its index has no images.
    std::partition(names.begin(), names.end(), [](const std::string& name) { return name != kOciIndexFile; });
    for (const std::string& name : names) {
      if (Status moved = move(join_path(content(), name), join_path(output_, name)); !moved) return moved;
    }
    return {};
  }

 private:
  PartialOutput(std::string output, bool is_inside, TemporaryDirectory directory)
      : output_(std::move(output)), is_inside_(is_inside), directory_(std::move(directory)) {}

  // The directories of other pulls, which may have been killed, do not matter.
  static bool is_unused(const std::string& directory) {
    const std::vector<std::string> names = list_directory(AT_FDCWD, directory.c_str());
    return std::all_of(names.begin(), names.end(), [](const std::string& name) { return name.starts_with(kPartial); });
  }
  static Status move(const std::string& from, const std::string& to) {
    if (std::rename(from.c_str(), to.c_str()) != 0) return io_error("cannot create", to, errno);
    return {};
  }

  std::string output_;
  bool is_inside_;
  TemporaryDirectory directory_;
};

Result<std::vector<PulledPart>> pull(const Arguments& arguments) {
  const Result<ImageName> image = parse_image_name(arguments.reference);
  if (!image) return image.error();
  const Result<std::vector<std::string>> chosen = choose_parts(arguments, *image);
  if (!chosen) return chosen.error();
  const Result<PartialOutput> partial = PartialOutput::create(arguments.output);
  if (!partial) return partial.error();
  std::vector<PulledPart> parts;
  if (Status made = make_directories(partial->content(), 0755); !made) return made.error();
  for (const std::string& part : *chosen) {
    const auto below = [&](const std::string& top) { return chosen->size() == 1 ? top : join_path(top, part); };
    const std::string directory = below(partial->content());
    if (Status made = make_directories(directory, 0755); !made) return made.error();
    if (Status copied = copy_image(arguments, image->with(part), directory); !copied) return copied.error();
    parts.push_back({part, image->with(part), below(arguments.output), layout_size(directory)});
  }
  if (Status published = partial->publish(); !published) return published.error();
  return parts;
}

}  // namespace

int bundle_pull_command(const Arguments& arguments, Console& console) {
  const Result<std::vector<PulledPart>> parts = pull(arguments);
  if (!parts) return report(parts.error(), console);
  Arguments copied = arguments;
  for (const PulledPart& part : *parts) copied.bundles.push_back(part.directory);
  const auto opened = open_bundle_arguments(copied, console);  // warns if this machine does not trust it
  if (!opened) return report(opened.error(), console);
  if (arguments.json) {
    console.print(bundle_pull_json(*parts));
    return kSuccess;
  }
  std::string paths;
  for (const PulledPart& part : *parts) {
    console.print(part.directory + ": " + part.image + ", " + format_bytes(part.bytes));
    paths += (paths.empty() ? "" : ":") + part.directory;
  }
  console.print("KILN_BUNDLES=" + paths + " uses " + (parts->size() == 1 ? "it" : "them"));
  return kSuccess;
}

}  // namespace kiln::cli
