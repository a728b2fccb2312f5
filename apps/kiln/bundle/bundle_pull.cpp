// kiln bundle pull: copies, with skopeo, the images of `kiln bundle oci --by-arch` that the devices of a machine use.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
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
#include "base/process/environment.hpp"
#include "bundle/bundle_split.hpp"
#include "bundle/oci_manifest.hpp"

namespace kiln::cli {
namespace {

constexpr std::chrono::minutes kListTimeout{1};

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

Result<std::vector<PulledPart>> pull(const Arguments& arguments) {
  const Result<ImageName> image = parse_image_name(arguments.reference);
  if (!image) return image.error();
  if (is_directory(arguments.output) && !list_directory(AT_FDCWD, arguments.output.c_str()).empty()) {
    return make_error(Code::InvalidArgument,
                      arguments.output + " is not empty: name a directory that does not exist yet");
  }
  const Result<std::vector<std::string>> chosen = choose_parts(arguments, *image);
  if (!chosen) return chosen.error();
  std::vector<PulledPart> parts;
  for (const std::string& part : *chosen) {
    const std::string directory = chosen->size() == 1 ? arguments.output : join_path(arguments.output, part);
    if (Status made = make_directories(directory, 0755); !made) return made.error();
    if (Status copied = copy_image(arguments, image->with(part), directory); !copied) return copied.error();
    parts.push_back({part, image->with(part), directory, layout_size(directory)});
  }
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
