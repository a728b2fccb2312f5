// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/bundle/bundle_files.hpp"

#include <utility>

#include "apps/kiln/bundle/bundle_provenance.hpp"
#include "apps/kiln/output/output.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/hash.hpp"

namespace kiln::cli {

Result<OpenBundle> open_for_inspection(const std::string& path, const TrustPolicy& policy) {
  const auto named = [&](const Error& error) {
    const bool says = error.message.find(path) != std::string::npos;
    // A missing bundle argument is a missing file (exit code 1), not a missing capability of this machine (3).
    const Code code = error.code == Code::Unavailable ? Code::Io : error.code;
    return make_error(code, says ? error.message : path + ": " + error.message);
  };
  Result<std::unique_ptr<BundleSource>> source = open_bundle_source(path);
  if (!source) return named(source.error());
  Result<std::unique_ptr<Bundle>> bundle = Bundle::look(std::move(*source), policy);
  if (!bundle) return named(bundle.error());
  Status trusted = (*bundle)->trusted();
  return OpenBundle{path, std::move(*bundle), std::move(trusted)};
}

Result<std::vector<OpenBundle>> open_bundle_arguments(const Arguments& arguments, Console& console) {
  const Result<TrustPolicy> policy = configured_policy(Config::load({}, EventEmitter(console.listener())));
  if (!policy) return policy.error();
  std::vector<OpenBundle> opened;
  for (const std::string& path : arguments.bundles) {
    Result<OpenBundle> bundle = open_for_inspection(path, *policy);
    if (!bundle) return bundle.error();
    if (!bundle->trust_status) {
      console.warn(path + " would not be used on this machine: " + bundle->trust_status.error().message);
    }
    opened.push_back(std::move(*bundle));
  }
  return opened;
}

Result<std::vector<OpenBundle>> open_to_sign(const Arguments& arguments, const SecretKey& key, Console& console) {
  Result<TrustPolicy> policy = configured_policy(Config::load({}, EventEmitter(console.listener())));
  if (!policy) return policy.error();
  policy->add_key(key.public_key(), "*");
  std::vector<OpenBundle> opened;
  for (const std::string& path : arguments.bundles) {
    Result<OpenBundle> open = open_for_inspection(path, *policy);
    if (!open) return open.error();
    if (!open->bundle->header().signature) {
      return make_error(Code::Denied, path +
                                          ": the bundle is not signed, so its contents cannot be signed here; omit "
                                          "--key, or sign it when it is built: kiln bundle create --key");
    }
    if (!open->trust_status) {
      return make_error(open->trust_status.error().code,
                        path + " cannot be signed again: " + open->trust_status.error().message);
    }
    opened.push_back(std::move(*open));
  }
  return opened;
}

std::optional<KeyId> signer_of(const BundleHeader& header) {
  return header.signature ? std::optional(header.signature->key) : std::nullopt;
}

std::optional<cccl::ArtifactInfo> cccl_info(const OpenBundle& open, const BundleDescription::Artifact& artifact) {
  if (artifact.target.form != Form::Cccl) return std::nullopt;
  const Result<std::optional<Hit>> hit = open.bundle->get(artifact.key, {});
  if (!hit || !*hit) return std::nullopt;
  Result<cccl::ArtifactInfo> info = cccl::artifact_info((*hit)->artifact);
  return info ? std::optional(std::move(*info)) : std::nullopt;
}

std::string identity_text(const std::string& name_space, std::uint64_t epoch, const std::optional<KeyId>& signer) {
  return name_space + ", epoch " + std::to_string(epoch) + ", " +
         (signer ? "signed by " + short_id(*signer) : std::string("unsigned"));
}

Result<BundleIdentity> BundleIdentity::of(const Arguments& arguments, std::string name_space, std::uint64_t epoch) {
  BundleIdentity speaker{arguments.name_space.value_or(std::move(name_space)), arguments.epoch.value_or(epoch), {}, {}};
  if (!is_name_space(speaker.name_space)) {
    return make_error(
        Code::InvalidArgument,
        "'" + speaker.name_space +
            "' is not a valid namespace: use at most 64 lower-case letters, digits and -_. with / between the "
            "parts, such as acme/vision");
  }
  Result<std::optional<ProvenanceSource>> provenance = given_provenance(arguments);
  if (!provenance) return provenance.error();
  speaker.provenance = std::move(*provenance);
  if (arguments.signing_key.empty()) return speaker;
  Result<SecretKey> key = SecretKey::read(arguments.signing_key);
  if (!key) return key.error();
  speaker.key = std::move(*key);
  return speaker;
}

std::optional<KeyId> BundleIdentity::signer() const {
  return key ? std::optional(key->public_key().id()) : std::nullopt;
}

std::string WrittenBundle::text() const {
  std::string text = path + ": " + format_bytes(bytes) + ", " + std::to_string(artifacts) +
                     (artifacts == 1 ? " artifact, " : " artifacts, ") + identity_text(name_space, epoch, signer);
  if (!signer) {
    text +=
        ": only machines with trust.unsigned (KILN_TRUST_UNSIGNED=1), programs that link it and packages that add it "
        "(kiln.use_bundle) can use it; --key signs it";
  }
  return text;
}

Status check_output(const std::string& path) {
  if (path.ends_with('/') || is_directory(path)) {
    return make_error(Code::InvalidArgument,
                      "-o " + path + " is a directory; give the name of a file, such as app.kiln");
  }
  if (!is_directory(parent_path(path))) return make_error(Code::Io, "directory not found: " + parent_path(path));
  return {};
}

Result<WrittenBundle> write_bundle(const BundleWriter& writer, const BundleIdentity& speaker, const std::string& path) {
  const Result<BundleImage> image = writer.finish(speaker.key ? &*speaker.key : nullptr);
  if (!image) return image.error();
  const std::string bytes = image->to_file();
  if (Status written = replace_file(path, bytes); !written) return written.error();
  return WrittenBundle{path,          bytes.size(),    sha256(bytes).hex(), writer.size(), speaker.name_space,
                       speaker.epoch, speaker.signer()};
}

}  // namespace kiln::cli
