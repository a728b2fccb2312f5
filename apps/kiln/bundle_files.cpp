#include "apps/kiln/bundle_files.hpp"

#include <utility>

#include "apps/kiln/output.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"

namespace kiln::cli {

Result<OpenBundle> open_to_look(const std::string& path, const TrustPolicy& policy) {
  const auto named = [&](const Error& error) {
    const bool says = error.message.find(path) != std::string::npos;
    // What was named and is not there is a file that is missing, not something that this machine lacks.
    const Code code = error.code == Code::Unavailable ? Code::Io : error.code;
    return failure(code, says ? error.message : path + ": " + error.message);
  };
  Result<std::unique_ptr<BundleSource>> source = open_bundle_source(path);
  if (!source) return named(source.error());
  Result<std::unique_ptr<Bundle>> bundle = Bundle::open(std::move(*source), nullptr);
  if (!bundle) return named(bundle.error());
  const BundleHeader& header = (*bundle)->header();
  Status believed = policy.admit(header.statement(), header.signature ? &*header.signature : nullptr);
  return OpenBundle{path, std::move(*bundle), std::move(believed)};
}

Result<std::vector<OpenBundle>> open_given(const Arguments& arguments, Console& console) {
  const Result<TrustPolicy> policy = configured_policy(Config::load({}, Observer(console.listener())));
  if (!policy) return policy.error();
  std::vector<OpenBundle> opened;
  for (const std::string& path : arguments.bundles) {
    Result<OpenBundle> bundle = open_to_look(path, *policy);
    if (!bundle) return bundle.error();
    if (!bundle->believed) {
      console.warn(path + " would not be used on this machine: " + bundle->believed.error().message);
    }
    opened.push_back(std::move(*bundle));
  }
  return opened;
}

std::optional<KeyId> signer_of(const BundleHeader& header) {
  return header.signature ? std::optional(header.signature->key) : std::nullopt;
}

std::string speaker_text(const std::string& name_space, std::uint64_t epoch, const std::optional<KeyId>& signer) {
  return name_space + ", epoch " + std::to_string(epoch) + ", " +
         (signer ? "signed by " + short_id(*signer) : std::string("unsigned"));
}

Result<Speaker> Speaker::of(const Arguments& arguments, std::string name_space, std::uint64_t epoch) {
  Speaker speaker{arguments.name_space.value_or(std::move(name_space)), arguments.epoch.value_or(epoch), {}};
  if (!is_name_space(speaker.name_space)) {
    return failure(Code::InvalidArgument,
                   "'" + speaker.name_space +
                       "' is no namespace: give at most 64 lower-case letters, digits and -_. with / between its "
                       "parts, such as acme/vision");
  }
  if (arguments.signing_key.empty()) return speaker;
  Result<SecretKey> key = SecretKey::read(arguments.signing_key);
  if (!key) return key.error();
  speaker.key = std::move(*key);
  return speaker;
}

std::optional<KeyId> Speaker::signer() const { return key ? std::optional(key->public_key().id()) : std::nullopt; }

std::string WrittenBundle::text() const {
  std::string text = path + ": " + size_text(bytes) + ", " + std::to_string(artifacts) +
                     (artifacts == 1 ? " artifact, " : " artifacts, ") + speaker_text(name_space, epoch, signer);
  if (!signer) {
    text +=
        ": only machines with trust.unsigned (KILN_TRUST_UNSIGNED=1) and programs that it is linked into use it; "
        "--key signs it";
  }
  return text;
}

Status check_output(const std::string& path) {
  if (path.ends_with('/') || is_folder(path)) {
    return failure(Code::InvalidArgument, "-o " + path + " is a folder; give the name of a file, such as app.kiln");
  }
  if (!is_folder(folder_of(path))) return failure(Code::Io, "there is no folder " + folder_of(path));
  return {};
}

Result<WrittenBundle> write_bundle(const BundleWriter& writer, const Speaker& speaker, const std::string& path) {
  const Result<BundleImage> image = writer.finish(speaker.key ? &*speaker.key : nullptr);
  if (!image) return image.error();
  const std::string bytes = image->whole();
  if (Status written = replace_file(path, bytes); !written) return written.error();
  return WrittenBundle{path,          bytes.size(),    sha256(bytes).hex(), writer.size(), speaker.name_space,
                       speaker.epoch, speaker.signer()};
}

}  // namespace kiln::cli
