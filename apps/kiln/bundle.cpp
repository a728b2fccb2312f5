// kiln bundle ls | verify | extract | layout: what is in one bundle.
#include <algorithm>

#include "apps/kiln/bundle_files.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output.hpp"
#include "apps/kiln/progress.hpp"
#include "apps/kiln/render_bundle_json.hpp"
#include "base/error.hpp"
#include "bundle/oci_layout.hpp"

namespace kiln::cli {
namespace {

std::string header_text(const BundleHeader& header) {
  return speaker_text(header.name_space, header.epoch, signer_of(header));
}

bool is_key_prefix(const std::string& text) {
  return !text.empty() && text.size() <= 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string what_text(const BundleDescription::Artifact& artifact) {
  return printable(artifact.unit + " for " + artifact.target.name()) + " (key " + artifact.key.hex().substr(0, 12) +
         ")";
}

// The one artifact that a name or the beginning of a key, and an architecture, leave.
Result<BundleDescription::Artifact> choose(const BundleDescription& description, const Arguments& arguments) {
  const Result<std::vector<Target>> targets = given_targets(arguments);
  if (!targets) return targets.error();
  const auto called = [&](const BundleDescription::Artifact& artifact) {
    return artifact.unit == arguments.key ||
           (is_key_prefix(arguments.key) && artifact.key.hex().starts_with(arguments.key));
  };
  const auto fits = [&](const BundleDescription::Artifact& artifact) {
    return targets->empty() || std::find(targets->begin(), targets->end(), artifact.target) != targets->end();
  };
  std::vector<const BundleDescription::Artifact*> found;
  std::string others;
  for (const BundleDescription::Artifact& artifact : description.artifacts) {
    if (!called(artifact)) continue;
    if (fits(artifact)) found.push_back(&artifact);
    if (!fits(artifact)) others += (others.empty() ? "" : ", ") + printable(artifact.target.name());
  }
  if (found.size() == 1) return *found.front();
  if (found.size() > 1) {
    return failure(Code::InvalidArgument, "'" + arguments.key + "' is several artifacts, for example " +
                                              what_text(*found[0]) + " and " + what_text(*found[1]) +
                                              "; give --arch, or more of the key");
  }
  if (!others.empty())
    return failure(Code::Io,
                   "it has '" + arguments.key + "' for other targets only: " + others + "; give one of them: --arch");
  return failure(Code::Io, "it has no unit '" + arguments.key +
                               "' and no key that begins so; 'kiln bundle ls' lists "
                               "them");
}

Status looked_through(const OpenBundle& open, Console& console) {
  Progress progress(console, {"reading", "artifacts"});
  progress.at(open.path);
  return open.bundle->verify(progress.advance());
}

}  // namespace

int bundle_ls_command(const Arguments& arguments, Console& console) {
  const auto opened = open_given(arguments, console);
  if (!opened) return report(opened.error(), console);
  const OpenBundle& open = opened->front();
  const Result<BundleDescription> description = open.bundle->description();
  if (!description) return report(description.error(), console, open.path);
  if (arguments.json) {
    console.print(bundle_ls_json(open, *description));
    return kDone;
  }
  std::vector<std::vector<std::string>> rows = {{"UNIT", "TARGET", "SIZE", "COMPILER", "KEY"}};
  for (const BundleDescription::Artifact& artifact : description->artifacts) {
    rows.push_back({printable(artifact.unit), printable(artifact.target.name()), size_text(artifact.bytes),
                    printable(artifact.compiler + ' ' + artifact.version), artifact.key.hex().substr(0, 12)});
  }
  console.print(open.path + ": " + header_text(open.bundle->header()) + ", " +
                std::to_string(description->artifacts.size()) + " artifacts");
  console.print(table_text(rows));
  return kDone;
}

int bundle_verify_command(const Arguments& arguments, Console& console) {
  Result<TrustPolicy> policy = TrustPolicy();
  if (arguments.public_key.empty()) {
    policy = configured_policy(Config::load({}, Observer(console.listener())));
  } else {
    const Result<PublicKey> key = PublicKey::parse(arguments.public_key);
    if (!key) return report(key.error(), console, "--public");
    policy->trust(*key, "*");
  }
  if (!policy) return report(policy.error(), console);
  int exit_code = kDone;
  std::vector<VerifiedBundle> all;
  for (const std::string& path : arguments.bundles) {
    VerifiedBundle verified{path, open_to_look(path, *policy), {}};
    if (verified.opened) verified.whole = looked_through(*verified.opened, console);
    if (!verified.opened) verified.whole = verified.opened.error();
    if (!verified.whole) {
      const int damaged = report(verified.whole.error(), console, verified.opened ? path : "");
      exit_code = exit_code == kDone ? damaged : exit_code;
    } else if (!verified.opened->believed) {
      const int refused = report(verified.opened->believed.error(), console, path + " is whole, but not believed");
      exit_code = exit_code == kDone ? refused : exit_code;
    } else if (!arguments.json) {
      console.print(path + ": whole and believed: " + header_text(verified.opened->bundle->header()));
    }
    all.push_back(std::move(verified));
  }
  if (arguments.json) console.print(bundle_verify_json(all));
  return exit_code;
}

int bundle_extract_command(const Arguments& arguments, Console& console) {
  const auto opened = open_given(arguments, console);
  if (!opened) return report(opened.error(), console);
  const OpenBundle& open = opened->front();
  const Result<BundleDescription> description = open.bundle->description();
  if (!description) return report(description.error(), console, open.path);
  const Result<BundleDescription::Artifact> chosen = choose(*description, arguments);
  if (!chosen) return report(chosen.error(), console, open.path);
  const Result<std::optional<Hit>> hit = open.bundle->get(chosen->key);
  if (!hit) return report(hit.error(), console, open.path);
  if (!*hit) return report(failure(Code::Corrupt, "its description lists what it does not have"), console, open.path);
  const Bytes& bytes = (*hit)->artifact.bytes;
  if (Status written = write_output(arguments.output, bytes.view()); !written) return report(written.error(), console);
  if (arguments.output == "-") return kDone;
  if (arguments.json) {
    console.print(bundle_artifact_json(*chosen, arguments.output));
  } else {
    console.print(arguments.output + ": " + size_text(bytes.size()) + ", " + to_string(chosen->target.form) + " of " +
                  what_text(*chosen));
  }
  return kDone;
}

int bundle_layout_command(const Arguments& arguments, Console& console) {
  const auto opened = open_given(arguments, console);
  if (!opened) return report(opened.error(), console);
  const OpenBundle& open = opened->front();
  // What moves from here is copied by many: it is looked through once, now.
  if (Status whole = looked_through(open, console); !whole) return report(whole.error(), console, open.path);
  const Result<BundleImage> image = open.bundle->image();
  if (!image) return report(image.error(), console, open.path);
  const Status written = [&] {
    const Progress progress(console, {"writing the image layout", {}});
    return write_oci_layout(*image, arguments.output, arguments.reference);
  }();
  if (!written) return report(written.error(), console);
  // The head and the description are one layer.
  const std::size_t layers = image->groups.size();
  if (arguments.json) {
    console.print(bundle_layout_json(open, arguments.output, arguments.reference, layers));
  } else {
    console.print(arguments.output + ": an OCI image layout of " + std::to_string(layers) + " layers, '" +
                  arguments.reference + "'; skopeo copy --all --preserve-digests oci:" + arguments.output + ':' +
                  arguments.reference + " docker://REGISTRY/NAME:TAG moves it");
  }
  return kDone;
}

}  // namespace kiln::cli
