// kiln bundle diff | merge: what several bundles have.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "apps/kiln/bundle_diff.hpp"
#include "apps/kiln/bundle_files.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/progress.hpp"
#include "apps/kiln/render_bundle_json.hpp"
#include "base/error.hpp"

namespace kiln::cli {
namespace {

void print_diff(const BundleDiff& diff, Console& console) {
  std::string text;
  for (const std::string& head : diff.heads) text += "head     " + head + '\n';
  for (const BundleDiff::Item& item : diff.items) {
    const std::string what = printable(item.unit + " for " + item.target);
    if (item.kind == BundleDiff::Kind::Added) text += console.green("added") + "    " + what + '\n';
    if (item.kind == BundleDiff::Kind::Removed) text += console.red("removed") + "  " + what + '\n';
    if (item.kind != BundleDiff::Kind::Changed) continue;
    text += console.yellow("changed") + "  " + what + ": " + joined(item.why, printable, "; ");
    text += item.same_bytes ? " (the same bytes came of it)\n" : "\n";
  }
  const auto count = [&](BundleDiff::Kind kind) {
    return std::to_string(std::count_if(diff.items.begin(), diff.items.end(),
                                        [&](const BundleDiff::Item& item) { return item.kind == kind; }));
  };
  text += count(BundleDiff::Kind::Added) + " added, " + count(BundleDiff::Kind::Removed) + " removed, " +
          count(BundleDiff::Kind::Changed) + " changed, " + std::to_string(diff.same) + " the same";
  console.print(text);
}

// Whose bytes may go into what is signed: those that somebody signed whom this machine believes, or whoever signs now,
// who vouched for them once already. That unsigned bundles may be used here makes nobody vouch for them.
Result<std::vector<OpenBundle>> open_to_sign(const Arguments& arguments, const SecretKey& key, Console& console) {
  Result<TrustPolicy> policy = configured_policy(Config::load({}, Observer(console.listener())));
  if (!policy) return policy.error();
  policy->trust(key.public_key(), "*");
  std::vector<OpenBundle> opened;
  for (const std::string& path : arguments.bundles) {
    Result<OpenBundle> open = open_to_look(path, *policy);
    if (!open) return open.error();
    if (!open->bundle->header().signature) {
      return failure(Code::Refused, path +
                                        ": nobody signed it, and what nobody vouches for is not signed here; merge " +
                                        "without --key, or sign it where it is built: kiln bundle create --key");
    }
    if (!open->believed) {
      return failure(open->believed.error().code, path + " is not signed again: " + open->believed.error().message);
    }
    opened.push_back(std::move(*open));
  }
  return opened;
}

// The speaker of all that are merged; nobody may be made to speak for another by mistake.
Result<Speaker> common_speaker(const Arguments& arguments, Speaker speaker, const std::vector<OpenBundle>& opened) {
  const BundleHeader& first = opened.front().bundle->header();
  for (const OpenBundle& open : opened) {
    const BundleHeader& header = open.bundle->header();
    if (!arguments.name_space && header.name_space != first.name_space) {
      return failure(Code::InvalidArgument, opened.front().path + " speaks for " + first.name_space + ", " + open.path +
                                                " for " + header.name_space + "; say which it is to be: --namespace");
    }
    // The later one's artifacts may be what the epoch was raised for.
    if (!arguments.epoch) speaker.epoch = std::max(speaker.epoch, header.epoch);
  }
  if (!arguments.name_space) speaker.name_space = first.name_space;
  return speaker;
}

Result<std::vector<Shadowed>> add_all(BundleWriter& writer, const std::vector<OpenBundle>& opened) {
  std::vector<Shadowed> shadowed;
  std::map<std::pair<UnitKey, std::string>, Key> served;
  for (const OpenBundle& open : opened) {
    Result<std::vector<BundleMember>> members = open.bundle->members();
    if (!members) return failure(members.error().code, open.path + ": " + members.error().message);
    for (BundleMember& member : *members) {
      const std::string target = member.artifact.target.name();
      const auto [before, first] = served.emplace(std::pair(member.unit, target), member.key);
      if (!first) {
        // A bundle that had both would serve the one with the lesser key, whichever came first.
        if (before->second != member.key) {
          shadowed.push_back({open.path, member.artifact.about.unit, target, member.key});
        }
        continue;
      }
      const Result<bool> added = writer.add(std::move(member));
      if (!added) return failure(added.error().code, open.path + ": " + added.error().message);
    }
  }
  return shadowed;
}

}  // namespace

int bundle_diff_command(const Arguments& arguments, Console& console) {
  if (arguments.bundles.size() != 2) {
    return report(failure(Code::InvalidArgument, "give two bundles: the one that was, and the one that is"), console);
  }
  const auto opened = open_given(arguments, console);
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
  return diff->equal() ? kDone : kFailed;
}

int bundle_merge_command(const Arguments& arguments, Console& console) {
  if (Status good = check_output(arguments.output); !good) return report(good.error(), console);
  Result<Speaker> speaker = Speaker::of(arguments, "local", 0);
  if (!speaker) return report(speaker.error(), console);
  const auto opened = speaker->key ? open_to_sign(arguments, *speaker->key, console) : open_given(arguments, console);
  if (!opened) return report(opened.error(), console);
  speaker = common_speaker(arguments, std::move(*speaker), *opened);
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
    return kDone;
  }
  for (const Shadowed& each : *shadowed) {
    console.print("left out: " + printable(each.unit + " for " + each.target) + " of " + each.path + " (key " +
                  each.key.hex().substr(0, 12) + "): an earlier bundle has the unit for that target");
  }
  console.print(written->text());
  return kDone;
}

}  // namespace kiln::cli
