// SPDX-License-Identifier: Apache-2.0
// kiln bundle split, kiln bundle oci --by-arch: the parts of a bundle that each architecture uses.
#include "bundle/bundle_split.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "apps/kiln/bundle/bundle_files.hpp"
#include "apps/kiln/bundle/render_bundle_json.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/output.hpp"
#include "apps/kiln/output/progress.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/hash.hpp"
#include "bundle/oci_layout.hpp"

namespace kiln::cli {
namespace {

/// A bundle, its parts, and the identity of each of them.
struct SplitBundle {
  OpenBundle open;
  BundleIdentity identity;
  std::vector<BundlePart> parts;
};

// Reads and verifies the bundle, and splits it. The parts keep its namespace and its epoch.
Result<SplitBundle> read_and_split(const Arguments& arguments, Console& console) {
  Result<BundleIdentity> identity = BundleIdentity::of(arguments, "local", 0);
  if (!identity) return identity.error();
  auto opened =
      identity->key ? open_to_sign(arguments, *identity->key, console) : open_bundle_arguments(arguments, console);
  if (!opened) return opened.error();
  OpenBundle open = std::move(opened->front());
  identity->name_space = open.bundle->header().name_space;
  identity->epoch = open.bundle->header().epoch;
  const Result<std::vector<BundleMember>> members = [&] {
    Progress progress(console, {"reading", "artifacts"});
    return open.bundle->members(progress.advance());
  }();
  if (!members) return make_error(members.error().code, open.path + ": " + members.error().message);
  if (members->empty()) return make_error(Code::InvalidArgument, open.path + " has no artifacts to split");
  std::vector<BundlePart> parts = split_by_architecture(*members);
  return SplitBundle{std::move(open), std::move(*identity), std::move(parts)};
}

Result<BundleWriter> writer_of(const BundlePart& part, const BundleIdentity& identity) {
  BundleWriter writer(identity.options());
  for (const BundleMember& member : part.members) {
    if (const Result<bool> added = writer.add(member); !added) return added.error();
  }
  return writer;
}

// Returns `parts/app.sm_90.kiln` for the bundle `build/app.kiln`.
std::string part_path(const std::string& directory, std::string bundle, const std::string& part) {
  while (bundle.size() > 1 && bundle.ends_with('/')) bundle.pop_back();
  std::string name = file_name(bundle);
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos && dot > 0) name.resize(dot);
  return join_path(directory, name + '.' + part + ".kiln");
}

// Prints the parts, and how much of all of them one node needs.
void print_parts(const std::vector<WrittenPart>& parts, Console& console) {
  std::vector<std::vector<std::string>> rows = {{"ARCHITECTURE", "ARTIFACTS", "SIZE", "OUTPUT"}};
  std::uint64_t all = 0;
  std::uint64_t least = UINT64_MAX;
  std::uint64_t most = 0;
  for (const auto& [architecture, bundle, layers] : parts) {
    rows.push_back({architecture, std::to_string(bundle.artifacts), format_bytes(bundle.bytes), bundle.path});
    all += bundle.bytes;
    least = std::min(least, bundle.bytes);
    most = std::max(most, bundle.bytes);
  }
  const WrittenBundle& first = parts.front().bundle;
  console.print(table_text(rows));
  console.print(format_count(parts.size(), "architecture, ", "architectures, ") + format_bytes(all) +
                " in all; a node with one kind of device needs " + format_bytes(least) +
                (least == most ? "" : " to " + format_bytes(most)) + "; " +
                identity_text(first.name_space, first.epoch, first.signer));
}

}  // namespace

int bundle_split_command(const Arguments& arguments, Console& console) {
  const Result<SplitBundle> split = read_and_split(arguments, console);
  if (!split) return report(split.error(), console);
  if (Status made = make_directories(arguments.output, 0755); !made) return report(made.error(), console);
  std::vector<WrittenPart> parts;
  for (const BundlePart& part : split->parts) {
    const Progress progress(console, {"writing the bundle for " + part.name, {}});
    const Result<BundleWriter> writer = writer_of(part, split->identity);
    if (!writer) return report(writer.error(), console);
    const std::string path = part_path(arguments.output, split->open.path, part.name);
    Result<WrittenBundle> written = write_bundle(*writer, split->identity, path);
    if (!written) return report(written.error(), console);
    parts.push_back({part.name, std::move(*written)});
  }
  if (arguments.json) {
    console.print(bundle_parts_json(split->open, arguments.output, parts));
  } else {
    print_parts(parts, console);
  }
  return kSuccess;
}

int bundle_oci_parts_command(const Arguments& arguments, Console& console) {
  const Result<SplitBundle> split = read_and_split(arguments, console);
  if (!split) return report(split.error(), console);
  const BundleIdentity& identity = split->identity;
  std::vector<BundleImage> images;
  std::vector<WrittenPart> parts;
  images.reserve(split->parts.size());
  std::vector<OciImage> named;
  for (const BundlePart& part : split->parts) {
    const Progress progress(console, {"writing the image for " + part.name, {}});
    const Result<BundleWriter> writer = writer_of(part, identity);
    if (!writer) return report(writer.error(), console);
    Result<BundleImage> image = writer->finish(identity.key ? &*identity.key : nullptr);
    if (!image) return report(image.error(), console);
    const std::string reference = arguments.reference + '-' + part.name;
    const std::string bytes = image->to_file();
    parts.push_back({part.name,
                     {reference, bytes.size(), sha256(bytes).hex(), writer->size(), identity.name_space, identity.epoch,
                      identity.signer()},
                     image->groups.size()});
    images.push_back(std::move(*image));
    named.push_back({&images.back(), reference});
  }
  if (Status written = write_oci_images(named, arguments.output); !written) return report(written.error(), console);
  if (arguments.json) {
    console.print(bundle_parts_json(split->open, arguments.output, parts));
    return kSuccess;
  }
  print_parts(parts, console);
  console.print(arguments.output + ": copy each image to a registry: skopeo copy --all --preserve-digests oci:" +
                arguments.output + ':' + parts.front().bundle.path + " docker://REGISTRY/NAME:TAG-" +
                parts.front().architecture + "; 'kiln bundle pull docker://REGISTRY/NAME:TAG -o DIR' fetches one");
  return kSuccess;
}

}  // namespace kiln::cli
