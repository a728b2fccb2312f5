#include "bundle/oci_manifest.hpp"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_depth.hpp"

namespace kiln {
namespace {

using nlohmann::json;

constexpr std::string_view kDigestPrefix = "sha256:";
constexpr const char* kLayoutVersion = "1.0.0";
constexpr std::size_t kLongestMediaType = 200;  // it is shown in messages
constexpr std::size_t kDeepestJson = 32;        // more than in any image
constexpr const char* kReferenceName = "org.opencontainers.image.ref.name";

Error damaged(std::string_view what) { return failure(Code::Corrupt, std::string(what)); }

/// A member of an object; null where there is none.
const json& member(const json& object, const char* name) {
  static const json kNothing;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : kNothing;
}

std::string text_of(const json& value) { return value.is_string() ? value.get<std::string>() : std::string(); }

Result<json> parse_object(std::string_view text) {
  if (text.size() > kLargestOciJson) return damaged("it is larger than 4 MiB");
  if (nests_deeper(text, kDeepestJson)) return damaged("it is nested too deeply");
  json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object()) return damaged("it is not a JSON object");
  return parsed;
}

/// An index or a manifest: their version, and their type where they say one.
Result<json> parse_document(std::string_view text, const char* media_type) {
  Result<json> document = parse_object(text);
  if (!document) return document;
  const json& version = member(*document, "schemaVersion");
  if (!version.is_number_integer() || version != 2) return damaged("its schemaVersion is not 2");
  const json& said = member(*document, "mediaType");
  if (!said.is_null() && text_of(said) != media_type) {
    return damaged("its mediaType is " + said.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 100) +
                   ", expected " + media_type);
  }
  return document;
}

std::optional<Digest> parse_digest(const json& value) {
  const std::string text = text_of(value);
  if (!text.starts_with(kDigestPrefix)) return std::nullopt;
  return Digest::from_hex(std::string_view(text).substr(kDigestPrefix.size()));
}

Result<OciDescriptor> parse_descriptor(const json& value) {
  OciDescriptor out;
  out.media_type = text_of(member(value, "mediaType"));
  if (out.media_type.empty() || out.media_type.size() > kLongestMediaType) {
    return damaged("a descriptor has no mediaType, or a very long one");
  }
  const std::optional<Digest> digest = parse_digest(member(value, "digest"));
  if (!digest) return damaged("a descriptor's digest is not sha256: and 64 hexadecimal digits");
  out.digest = *digest;
  const json& size = member(value, "size");
  if (!size.is_number_unsigned()) return damaged("a descriptor's size is not a number of bytes");
  out.size = size.get<std::uint64_t>();
  out.architecture = text_of(member(member(value, "platform"), "architecture"));
  out.reference = text_of(member(member(value, "annotations"), kReferenceName));
  return out;
}

Result<std::vector<OciDescriptor>> parse_descriptors(const json& values, std::size_t most, const char* name) {
  if (!values.is_array() || values.empty() || values.size() > most) {
    return damaged(std::string("it has no ") + name + ", or more than " + std::to_string(most));
  }
  std::vector<OciDescriptor> out;
  for (const json& value : values) {
    Result<OciDescriptor> one = parse_descriptor(value);
    if (!one) return std::move(one).error();
    out.push_back(std::move(*one));
  }
  return out;
}

/// What people do who forget an option deserves a sentence of its own.
Status check_layer_type(const OciDescriptor& layer) {
  if (layer.media_type == kOciLayer) return {};
  const bool compressed = layer.media_type.starts_with("application/vnd.oci.image.layer.v1.tar+") ||
                          layer.media_type.starts_with("application/vnd.docker.image.rootfs.diff.tar");
  return damaged("layer " + oci_digest(layer.digest) + " is of type " + layer.media_type + ", expected " + kOciLayer +
                 (compressed ? "; it was compressed or converted when the image was copied: copy it again, to the "
                               "registry and back, with skopeo copy --all --preserve-digests"
                             : ""));
}

json descriptor_json(const OciDescriptor& descriptor) {
  json out = {
      {"mediaType", descriptor.media_type}, {"digest", oci_digest(descriptor.digest)}, {"size", descriptor.size}};
  if (!descriptor.architecture.empty()) out["platform"] = {{"architecture", descriptor.architecture}, {"os", "linux"}};
  if (!descriptor.reference.empty()) out["annotations"] = {{kReferenceName, descriptor.reference}};
  return out;
}

}  // namespace

std::string oci_digest(const Digest& digest) { return std::string(kDigestPrefix) + digest.hex(); }

std::string encode_oci_layout_file() { return json{{"imageLayoutVersion", kLayoutVersion}}.dump(); }

std::string encode_oci_index(std::span<const OciDescriptor> manifests) {
  json out = {{"schemaVersion", 2}, {"mediaType", kOciIndex}, {"manifests", json::array()}};
  for (const OciDescriptor& manifest : manifests) out["manifests"].push_back(descriptor_json(manifest));
  return out.dump();
}

std::string encode_oci_manifest(const OciManifest& manifest) {
  json out = {{"schemaVersion", 2},
              {"mediaType", kOciManifest},
              {"config", descriptor_json(manifest.config)},
              {"layers", json::array()}};
  for (const OciDescriptor& layer : manifest.layers) out["layers"].push_back(descriptor_json(layer));
  return out.dump();
}

std::string encode_oci_config(const std::string& architecture, std::span<const OciDescriptor> layers) {
  json digests = json::array();
  for (const OciDescriptor& layer : layers) digests.push_back(oci_digest(layer.digest));
  const json rootfs = {{"type", "layers"}, {"diff_ids", std::move(digests)}};
  return json{{"architecture", architecture}, {"os", "linux"}, {"config", json::object()}, {"rootfs", rootfs}}.dump();
}

Status parse_oci_layout_file(std::string_view text) {
  const Result<json> file = parse_object(text);
  if (!file) return file.error();
  const std::string version = text_of(member(*file, "imageLayoutVersion"));
  if (version == kLayoutVersion) return {};
  return damaged("its imageLayoutVersion is '" + version.substr(0, 40) + "', and this kiln reads " + kLayoutVersion);
}

Result<std::vector<OciDescriptor>> parse_oci_index(std::string_view text) {
  const Result<json> index = parse_document(text, kOciIndex);
  if (!index) return index.error();
  return parse_descriptors(member(*index, "manifests"), kMostOciManifests, "manifests");
}

Result<OciManifest> parse_oci_manifest(std::string_view text) {
  const Result<json> document = parse_document(text, kOciManifest);
  if (!document) return document.error();
  OciManifest out;
  Result<OciDescriptor> config = parse_descriptor(member(*document, "config"));
  if (!config) return std::move(config).error();
  if (config->media_type != kOciConfig) return damaged("its config is of type " + config->media_type);
  out.config = std::move(*config);
  auto layers = parse_descriptors(member(*document, "layers"), kMostOciLayers, "layers");
  if (!layers) return std::move(layers).error();
  for (const OciDescriptor& layer : *layers) {
    if (Status good = check_layer_type(layer); !good) return std::move(good).error();
  }
  out.layers = std::move(*layers);
  return out;
}

Result<std::vector<Digest>> parse_oci_config(std::string_view text) {
  const Result<json> config = parse_object(text);
  if (!config) return config.error();
  const json& rootfs = member(*config, "rootfs");
  const json& digests = member(rootfs, "diff_ids");
  if (text_of(member(rootfs, "type")) != "layers" || !digests.is_array() || digests.size() > kMostOciLayers) {
    return damaged("its rootfs is not a list of layers");
  }
  std::vector<Digest> out;
  for (const json& value : digests) {
    const std::optional<Digest> digest = parse_digest(value);
    if (!digest) return damaged("one of its diff_ids is not sha256: and 64 hexadecimal digits");
    out.push_back(*digest);
  }
  return out;
}

}  // namespace kiln
