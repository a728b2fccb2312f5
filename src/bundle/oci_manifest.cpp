// SPDX-License-Identifier: Apache-2.0
#include "bundle/oci_manifest.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"

namespace kiln {
namespace {

constexpr std::string_view kDigestPrefix = "sha256:";
constexpr const char* kLayoutVersion = "1.0.0";
constexpr std::size_t kMaxMediaTypeLength = 200;  // it is shown in messages
constexpr std::size_t kMaxJsonDepth = 32;         // more than any image uses
constexpr std::size_t kMaxJsonValues = 100'000;
constexpr const char* kReferenceName = "org.opencontainers.image.ref.name";

Error no_image(std::string_view what) { return make_error(Code::Corrupt, std::string(what)); }

std::string text_of(const SortedJson& value) { return value.is_string() ? value.get<std::string>() : std::string(); }

Result<SortedJson> parse_object(std::string_view text) {
  if (text.size() > kMaxOciJsonBytes) return no_image("it is larger than 4 MiB");
  Result<SortedJson> parsed = parse_json(text, {kMaxJsonDepth, kMaxJsonValues});
  if (!parsed) return no_image("it " + parsed.error().message);
  if (!parsed->is_object()) return no_image("it is not a JSON object");
  return parsed;
}

/// Parses an index or a manifest, and checks its version and, if present, its media type.
Result<SortedJson> parse_document(std::string_view text, const char* media_type) {
  Result<SortedJson> document = parse_object(text);
  if (!document) return document;
  const SortedJson& version = member_of(*document, "schemaVersion");
  if (!version.is_number_integer() || version != 2) return no_image("its schemaVersion is not 2");
  const SortedJson& said = member_of(*document, "mediaType");
  if (!said.is_null() && text_of(said) != media_type) {
    return no_image("its mediaType is " + json_text(said).substr(0, 100) + ", expected " + media_type);
  }
  return document;
}

std::optional<Digest> parse_digest(const SortedJson& value) {
  const std::string text = text_of(value);
  if (!text.starts_with(kDigestPrefix)) return std::nullopt;
  return Digest::from_hex(std::string_view(text).substr(kDigestPrefix.size()));
}

Result<OciDescriptor> parse_descriptor(const SortedJson& value) {
  OciDescriptor out;
  out.media_type = text_of(member_of(value, "mediaType"));
  if (out.media_type.empty() || out.media_type.size() > kMaxMediaTypeLength) {
    return no_image("a descriptor has no mediaType, or a very long one");
  }
  const std::optional<Digest> digest = parse_digest(member_of(value, "digest"));
  if (!digest) return no_image("a descriptor's digest is not sha256: and 64 hexadecimal digits");
  out.digest = *digest;
  const SortedJson& size = member_of(value, "size");
  if (!size.is_number_unsigned()) return no_image("a descriptor's size is not a number of bytes");
  out.size = size.get<std::uint64_t>();
  out.architecture = text_of(member_of(member_of(value, "platform"), "architecture"));
  out.reference = text_of(member_of(member_of(value, "annotations"), kReferenceName));
  return out;
}

Result<std::vector<OciDescriptor>> parse_descriptors(const SortedJson& values, std::size_t maximum, const char* name) {
  if (!values.is_array() || values.empty() || values.size() > maximum) {
    return no_image(std::string("it has no ") + name + ", or more than " + std::to_string(maximum));
  }
  std::vector<OciDescriptor> out;
  for (const SortedJson& value : values) {
    Result<OciDescriptor> one = parse_descriptor(value);
    if (!one) return std::move(one).error();
    out.push_back(std::move(*one));
  }
  return out;
}

/// A copy without the required option is a common mistake and gets its own message.
Status check_layer_type(const OciDescriptor& layer) {
  if (layer.media_type == kOciLayer) return {};
  const bool compressed = layer.media_type.starts_with("application/vnd.oci.image.layer.v1.tar+") ||
                          layer.media_type.starts_with("application/vnd.docker.image.rootfs.diff.tar");
  return no_image("layer " + oci_digest(layer.digest) + " is of type " + layer.media_type + ", expected " + kOciLayer +
                  (compressed ? "; it was compressed or converted when the image was copied: copy it again, to the "
                                "registry and back, with skopeo copy --all --preserve-digests"
                              : ""));
}

SortedJson descriptor_json(const OciDescriptor& descriptor) {
  SortedJson out = {
      {"mediaType", descriptor.media_type}, {"digest", oci_digest(descriptor.digest)}, {"size", descriptor.size}};
  if (!descriptor.architecture.empty()) out["platform"] = {{"architecture", descriptor.architecture}, {"os", "linux"}};
  if (!descriptor.reference.empty()) out["annotations"] = {{kReferenceName, descriptor.reference}};
  return out;
}

}  // namespace

std::string oci_digest(const Digest& digest) { return std::string(kDigestPrefix) + digest.hex(); }

std::string encode_oci_layout_file() { return json_text(SortedJson{{"imageLayoutVersion", kLayoutVersion}}); }

std::string encode_oci_index(std::span<const OciDescriptor> manifests) {
  SortedJson out = {{"schemaVersion", 2}, {"mediaType", kOciIndex}, {"manifests", SortedJson::array()}};
  for (const OciDescriptor& manifest : manifests) out["manifests"].push_back(descriptor_json(manifest));
  return json_text(out);
}

std::string encode_oci_manifest(const OciManifest& manifest) {
  SortedJson out = {{"schemaVersion", 2},
                    {"mediaType", kOciManifest},
                    {"config", descriptor_json(manifest.config)},
                    {"layers", SortedJson::array()}};
  for (const OciDescriptor& layer : manifest.layers) out["layers"].push_back(descriptor_json(layer));
  return json_text(out);
}

std::string encode_oci_config(const std::string& architecture, std::span<const OciDescriptor> layers) {
  SortedJson digests = SortedJson::array();
  for (const OciDescriptor& layer : layers) digests.push_back(oci_digest(layer.digest));
  const SortedJson rootfs = {{"type", "layers"}, {"diff_ids", std::move(digests)}};
  return json_text(SortedJson{
      {"architecture", architecture}, {"os", "linux"}, {"config", SortedJson::object()}, {"rootfs", rootfs}});
}

Status parse_oci_layout_file(std::string_view text) {
  const Result<SortedJson> file = parse_object(text);
  if (!file) return file.error();
  const std::string version = text_of(member_of(*file, "imageLayoutVersion"));
  if (version == kLayoutVersion) return {};
  return no_image("its imageLayoutVersion is '" + version.substr(0, 40) + "', but this kiln reads " + kLayoutVersion);
}

Result<std::vector<OciDescriptor>> parse_oci_index(std::string_view text) {
  const Result<SortedJson> index = parse_document(text, kOciIndex);
  if (!index) return index.error();
  return parse_descriptors(member_of(*index, "manifests"), kMaxOciManifests, "manifests");
}

Result<OciManifest> parse_oci_manifest(std::string_view text) {
  const Result<SortedJson> document = parse_document(text, kOciManifest);
  if (!document) return document.error();
  OciManifest out;
  Result<OciDescriptor> config = parse_descriptor(member_of(*document, "config"));
  if (!config) return std::move(config).error();
  if (config->media_type != kOciConfig) return no_image("its config is of type " + config->media_type);
  out.config = std::move(*config);
  auto layers = parse_descriptors(member_of(*document, "layers"), kMaxOciLayers, "layers");
  if (!layers) return std::move(layers).error();
  for (const OciDescriptor& layer : *layers) {
    if (Status good = check_layer_type(layer); !good) return std::move(good).error();
  }
  out.layers = std::move(*layers);
  return out;
}

bool is_oci_reference(std::string_view text) {
  return !text.empty() && text.size() <= 128 && text.front() != '.' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                  c == '-';
         });
}

Result<std::vector<std::string>> parse_oci_tags(std::string_view text) {
  const Result<SortedJson> list = parse_object(text);
  if (!list) return list.error();
  const SortedJson& tags = member_of(*list, "Tags");
  if (!tags.is_array()) return no_image("it has no list of tags");
  std::vector<std::string> out;
  for (const SortedJson& value : tags) {
    if (std::string tag = text_of(value); is_oci_reference(tag)) out.push_back(std::move(tag));
  }
  return out;
}

Result<std::vector<Digest>> parse_oci_config(std::string_view text) {
  const Result<SortedJson> config = parse_object(text);
  if (!config) return config.error();
  const SortedJson& rootfs = member_of(*config, "rootfs");
  const SortedJson& digests = member_of(rootfs, "diff_ids");
  if (text_of(member_of(rootfs, "type")) != "layers" || !digests.is_array() || digests.size() > kMaxOciLayers) {
    return no_image("its rootfs is not a list of layers");
  }
  std::vector<Digest> out;
  for (const SortedJson& value : digests) {
    const std::optional<Digest> digest = parse_digest(value);
    if (!digest) return no_image("one of its diff_ids is not sha256: and 64 hexadecimal digits");
    out.push_back(*digest);
  }
  return out;
}

}  // namespace kiln
