// SPDX-License-Identifier: Apache-2.0
// kiln bundle diff | merge: commands for several bundles.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "apps/kiln/bundle/bundle_diff.hpp"
#include "apps/kiln/bundle/bundle_files.hpp"
#include "apps/kiln/bundle/render_bundle_json.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/progress.hpp"
#include "base/error.hpp"

namespace kiln::cli {
namespace {

void print_diff(const BundleDiff& diff, Console& console) {
  Text text;
  for (const std::string& head : diff.heads) text += "head     " + head + '\n';
  for (const BundleDiff::Item& item : diff.items) {
    const std::string what = printable(item.unit + " for " + item.target);
    if (item.kind == BundleDiff::Kind::Added) text += console.green("added") + "    " + what + '\n';
    if (item.kind == BundleDiff::Kind::Removed) text += console.red("removed") + "  " + what + '\n';
    if (item.kind != BundleDiff::Kind::Changed) continue;
    text += console.yellow("changed") + "  " + what + ": " + join_strings(item.reason, printable, "; ");
    text += item.same_bytes ? " (same bytes)\n" : "\n";
  }
  const auto count = [&](BundleDiff::Kind kind) {
    return std::to_string(std::count_if(diff.items.begin(), diff.items.end(),
                                        [&](const BundleDiff::Item& item) { return item.kind == kind; }));
  };
  text += count(BundleDiff::Kind::Added) + " added, " + count(BundleDiff::Kind::Removed) + " removed, " +
          count(BundleDiff::Kind::Changed) + " changed, " + std::to_string(diff.same) + " the same";
  console.print(text);
}

// Returns the namespace and epoch of the merged bundle. The namespaces must agree, so that no bundle is signed for
// another namespace by mistake.
Result<BundleIdentity> common_identity(const Arguments& arguments, BundleIdentity speaker,
                                       const std::vector<OpenBundle>& opened) {
  const BundleHeader& first = opened.front().bundle->header();
  for (const OpenBundle& open : opened) {
    const BundleHeader& header = open.bundle->header();
    if (!arguments.name_space && header.name_space != first.name_space) {
      return make_error(Code::InvalidArgument, opened.front().path + " has namespace " + first.name_space + ", " +
                                                   open.path + " has " + header.name_space +
                                                   "; select one with --namespace");
    }
    // The epoch may have been raised because of the artifacts of the later bundle.
    if (!arguments.epoch) speaker.epoch = std::max(speaker.epoch, header.epoch);
  }
  if (!arguments.name_space) speaker.name_space = first.name_space;
  return speaker;
}

Result<std::vector<Shadowed>> add_all(BundleWriter& writer, const std::vector<OpenBundle>& opened) {
  std::vector<Shadowed> shadowed;
  std::map<std::pair<UnitKey, std::string>, ArtifactKey> served;
  for (const OpenBundle& open : opened) {
    Result<std::vector<BundleMember>> members = open.bundle->members();
    if (!members) return make_error(members.error().code, open.path + ": " + members.error().message);
    for (BundleMember& member : *members) {
      const std::string target = member.artifact.target.name();
      const auto [before, first] = served.emplace(std::pair(member.unit, target), member.key);
      if (!first) {
        // A bundle with both artifacts would serve the one with the lower key, regardless of their order.
        if (before->second != member.key) {
          shadowed.push_back({open.path, member.artifact.metadata.unit, target, member.key});
        }
        continue;
      }
      const Result<bool> added = writer.add(std::move(member));
      if (!added) return make_error(added.error().code, open.path + ": " + added.error().message);
    }
  }
  return shadowed;
}

}  // namespace

int bundle_diff_command(const Arguments& arguments, Console& console) {
  if (arguments.bundles.size() != 2) {
    return report(make_error(Code::InvalidArgument, "give two bundles: the old one and the new one"), console);
  }
  const auto opened = open_bundle_arguments(arguments, console);
  if (!opened) return report(opened.error(), console);
  const OpenBundle& then = opened->front();
  const OpenBundle& now = opened->back();
  const Result<BundleDiff> diff = diff_bundles(*then.bundle, *now.bundle);
  if (!diff) return report(diff.error(), console);
  if (arguments.json) {
    console.print(bundle_diff_json(then, now, *diff));
  } else {
    print_diff(*diff, console);
  }
  return diff->equal() ? kSuccess : kFailed;
}

int bundle_merge_command(const Arguments& arguments, Console& console) {
  if (Status good = check_output(arguments.output); !good) return report(good.error(), console);
  Result<BundleIdentity> speaker = BundleIdentity::of(arguments, "local", 0);
  if (!speaker) return report(speaker.error(), console);
  const auto opened =
      speaker->key ? open_to_sign(arguments, *speaker->key, console) : open_bundle_arguments(arguments, console);
  if (!opened) return report(opened.error(), console);
  speaker = common_identity(arguments, std::move(*speaker), *opened);
  if (!speaker) return report(speaker.error(), console);
  BundleWriter writer(speaker->options());
  std::optional<Progress> merging(std::in_place, console, ProgressMeter::Options{"merging", {}});
  const Result<std::vector<Shadowed>> shadowed = add_all(writer, *opened);
  if (!shadowed) return report(shadowed.error(), console);
  const Result<WrittenBundle> written = write_bundle(writer, *speaker, arguments.output);
  merging.reset();
  if (!written) return report(written.error(), console);
  if (arguments.json) {
    console.print(bundle_merge_json(*written, *shadowed));
    return kSuccess;
  }
  for (const Shadowed& each : *shadowed) {
    console.print("skipped: " + printable(each.unit + " for " + each.target) + " of " + each.path + " (key " +
                  each.key.hex().substr(0, 12) + "): an earlier bundle has this unit for this target");
  }
  console.print(written->text());
  return kSuccess;
}

}  // namespace kiln::cli
