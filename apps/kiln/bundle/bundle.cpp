// SPDX-License-Identifier: Apache-2.0
// kiln bundle ls | verify | extract | oci: commands for a single bundle.
#include <algorithm>

#include "apps/kiln/bundle/bundle_files.hpp"
#include "apps/kiln/bundle/bundle_provenance.hpp"
#include "apps/kiln/bundle/render_bundle_json.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/output.hpp"
#include "apps/kiln/output/progress.hpp"
#include "base/error.hpp"
#include "bundle/oci_layout.hpp"

namespace kiln::cli {
namespace {

std::string header_text(const BundleHeader& header) {
  return identity_text(header.name_space, header.epoch, signer_of(header));
}

// Returns the lines below the table: the capability, the runtime policy and the kernels of a CCCL artifact.
std::string cccl_text(const OpenBundle& open, const BundleDescription::Artifact& artifact) {
  const auto info = cccl_info(open, artifact);
  if (!info) return {};
  std::string text = printable(artifact.unit + " for " + artifact.target.name()) + ": capability " +
                     std::to_string(info->capability) + ", runtime policy " + std::to_string(info->policy_bytes) +
                     " bytes, " + std::to_string(info->kernels.size()) + " kernels";
  for (const std::string& kernel : info->kernels) text += "\n  " + printable(kernel);
  return text;
}

bool is_key_prefix(const std::string& text) {
  return !text.empty() && text.size() <= 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string what_text(const BundleDescription::Artifact& artifact) {
  return printable(artifact.unit + " for " + artifact.target.name()) + " (key " + artifact.key.hex().substr(0, 12) +
         ")";
}

// Returns the only artifact that matches a unit name or key prefix and the given architectures.
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
    return make_error(Code::InvalidArgument, "'" + arguments.key + "' matches several artifacts, for example " +
                                                 what_text(*found[0]) + " and " + what_text(*found[1]) +
                                                 "; add --arch or more of the key");
  }
  if (!others.empty())
    return make_error(Code::Io, "the bundle has '" + arguments.key + "' only for other targets: " + others +
                                    "; select one with --arch");
  return make_error(Code::Io, "the bundle has no unit '" + arguments.key +
                                  "' and no key with this prefix; 'kiln bundle ls' lists "
                                  "them");
}

Status looked_through(Bundle& bundle, const std::string& path, Console& console) {
  Progress progress(console, {"reading", "artifacts"});
  progress.at(path);
  return bundle.verify(progress.advance());
}

// Verifies the signature first. The contents of an untrusted bundle are read only if `untrusted` is set.
VerifiedBundle verified_bundle(const std::string& path, const TrustPolicy& policy, bool untrusted, Console& console) {
  VerifiedBundle verified{path, open_for_inspection(path, policy), {}, {}, {}};
  if (!verified.opened) {
    verified.intact = Status(verified.opened.error());
    return verified;
  }
  if (!verified.opened->trust_status && !untrusted) return verified;
  Bundle& bundle = *verified.opened->bundle;
  verified.intact = looked_through(bundle, path, console);
  if (!*verified.intact) return verified;
  const Result<BundleDescription> description = bundle.description();
  if (!description) verified.intact = Status(description.error());
  if (!description || description->provenance.empty()) return verified;
  const Result<Provenance> provenance = Provenance::parse(description->provenance);
  if (provenance) verified.provenance = *provenance;
  verified.compilers = compilers_of(*description);
  return verified;
}

// Prints the result of a verification and returns the exit code for it.
int emit(const VerifiedBundle& verified, bool print, Console& console) {
  const std::string& path = verified.path;
  if (verified.intact && !*verified.intact)
    return report(verified.intact->error(), console, verified.opened ? path : "");
  const OpenBundle& open = *verified.opened;
  int code = kSuccess;
  if (!verified.intact) {
    return report(open.trust_status.error(), console, path + " is not trusted and its contents were not read");
  }
  if (!open.trust_status) {
    code = report(open.trust_status.error(), console, path + " is intact but not trusted");
  } else if (print) {
    console.print(path + ": intact and trusted: " + header_text(open.bundle->header()));
  }
  if (print && verified.provenance) console.print(provenance_text(verified));
  return code;
}

// Returns the whole bundle in memory after verifying it, so that exactly the verified bytes are written afterwards.
Result<BundleImage> verified_image(const OpenBundle& open, Console& console) {
  Result<BundleImage> image = open.bundle->image();
  if (!image) return image;
  const auto in_memory = Bundle::open(bundle_in_image(*image, open.path), nullptr, open.bundle->limits());
  if (!in_memory) return in_memory.error();
  if (Status whole = looked_through(**in_memory, open.path, console); !whole) return std::move(whole).error();
  return image;
}

}  // namespace

int bundle_ls_command(const Arguments& arguments, Console& console) {
  const auto opened = open_bundle_arguments(arguments, console);
  if (!opened) return report(opened.error(), console);
  const OpenBundle& open = opened->front();
  const Result<BundleDescription> description = open.bundle->description();
  if (!description) return report(description.error(), console, open.path);
  if (arguments.json) {
    console.print(bundle_ls_json(open, *description));
    return kSuccess;
  }
  std::vector<std::vector<std::string>> rows = {{"UNIT", "TARGET", "SIZE", "COMPILER", "KEY"}};
  for (const BundleDescription::Artifact& artifact : description->artifacts) {
    rows.push_back({printable(artifact.unit), printable(artifact.target.name()), format_bytes(artifact.bytes),
                    printable(artifact.compiler + ' ' + artifact.version), artifact.key.hex().substr(0, 12)});
  }
  console.print(open.path + ": " + header_text(open.bundle->header()) + ", " +
                std::to_string(description->artifacts.size()) + " artifacts");
  console.print(table_text(rows));
  for (const BundleDescription::Artifact& artifact : description->artifacts) {
    if (const std::string text = cccl_text(open, artifact); !text.empty()) console.print(text);
  }
  return kSuccess;
}

int bundle_verify_command(const Arguments& arguments, Console& console) {
  Result<TrustPolicy> policy = TrustPolicy();
  if (arguments.public_key.empty()) {
    policy = configured_policy(Config::load({}, EventEmitter(console.listener())));
  } else {
    const Result<PublicKey> key = PublicKey::parse(arguments.public_key);
    if (!key) return report(key.error(), console, "--public-key");
    policy->add_key(*key, "*");
  }
  if (!policy) return report(policy.error(), console);
  int exit_code = kSuccess;
  std::vector<VerifiedBundle> all;
  for (const std::string& path : arguments.bundles) {
    all.push_back(verified_bundle(path, *policy, arguments.untrusted, console));
    const int code = emit(all.back(), !arguments.json, console);
    exit_code = exit_code == kSuccess ? code : exit_code;
  }
  if (arguments.json) console.print(bundle_verify_json(all));
  return exit_code;
}

int bundle_extract_command(const Arguments& arguments, Console& console) {
  const auto opened = open_bundle_arguments(arguments, console);
  if (!opened) return report(opened.error(), console);
  const OpenBundle& open = opened->front();
  const Result<BundleDescription> description = open.bundle->description();
  if (!description) return report(description.error(), console, open.path);
  const Result<BundleDescription::Artifact> chosen = choose(*description, arguments);
  if (!chosen) return report(chosen.error(), console, open.path);
  const Result<std::optional<Hit>> hit = open.bundle->get(chosen->key, {});
  if (!hit) return report(hit.error(), console, open.path);
  if (!*hit)
    return report(make_error(Code::Corrupt, "its description lists an artifact that it does not contain"), console,
                  open.path);
  const Bytes& bytes = (*hit)->artifact.bytes;
  if (Status written = write_output(arguments.output, bytes.view()); !written) return report(written.error(), console);
  if (arguments.output == "-") return kSuccess;
  if (arguments.json) {
    console.print(bundle_artifact_json(*chosen, arguments.output));
  } else {
    console.print(arguments.output + ": " + format_bytes(bytes.size()) + ", " + to_string(chosen->target.form) +
                  " of " + what_text(*chosen));
  }
  return kSuccess;
}

int bundle_oci_command(const Arguments& arguments, Console& console) {
  if (arguments.by_architecture) return bundle_oci_parts_command(arguments, console);
  if (!arguments.signing_key.empty()) {
    return report(make_error(Code::InvalidArgument,
                             "--key requires --by-arch: without it the image has the signature of the bundle"),
                  console);
  }
  const auto opened = open_bundle_arguments(arguments, console);
  if (!opened) return report(opened.error(), console);
  const OpenBundle& open = opened->front();
  // Many hosts will copy this output, so verify the bundle before it is written.
  const Result<BundleImage> image = verified_image(open, console);
  if (!image) return report(image.error(), console, open.path);
  const Status written = [&] {
    const Progress progress(console, {"writing the image layout", {}});
    return write_oci_layout(*image, arguments.output, arguments.reference);
  }();
  if (!written) return report(written.error(), console);
  // The head and the description form one additional layer.
  const std::size_t layers = image->groups.size();
  if (arguments.json) {
    console.print(bundle_oci_json(open, arguments.output, arguments.reference, layers));
  } else {
    console.print(arguments.output + ": an OCI image layout of " + std::to_string(layers) + " layers, '" +
                  arguments.reference + "'; skopeo copy --all --preserve-digests oci:" + arguments.output + ':' +
                  arguments.reference + " docker://REGISTRY/NAME:TAG copies it to a registry");
  }
  return kSuccess;
}

}  // namespace kiln::cli
