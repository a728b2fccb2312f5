// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as each of the files of an image layout, or as a list of tags; the first byte selects which.
// Reads no file.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.hpp"
#include "bundle/oci_manifest.hpp"
#include "bundle/tar.hpp"
#include "fuzz_check.hpp"

namespace {

using kiln::fuzz::require;

void check_descriptors(const std::vector<kiln::OciDescriptor>& descriptors, std::size_t maximum) {
  require(!descriptors.empty() && descriptors.size() <= maximum, "the number of descriptors is bounded");
  for (const kiln::OciDescriptor& one : descriptors) require(!one.media_type.empty(), "a descriptor has a type");
}

void check_index(std::string_view text) {
  const auto index = kiln::parse_oci_index(text);
  if (!index) return;
  check_descriptors(*index, kiln::kMaxOciManifests);
  const auto again = kiln::parse_oci_index(kiln::encode_oci_index(*index));
  require(again.has_value() && *again == *index, "an index round-trips");
}

void check_manifest(std::string_view text) {
  const auto manifest = kiln::parse_oci_manifest(text);
  if (!manifest) return;
  check_descriptors(manifest->layers, kiln::kMaxOciLayers);
  for (const kiln::OciDescriptor& layer : manifest->layers)
    require(layer.media_type == kiln::kOciLayer, "layers are uncompressed");
  const auto again = kiln::parse_oci_manifest(kiln::encode_oci_manifest(*manifest));
  require(again.has_value() && again->layers == manifest->layers && again->config == manifest->config,
          "a manifest round-trips");
}

void check_config(std::string_view text) {
  const auto digests = kiln::parse_oci_config(text);
  require(!digests || digests->size() <= kiln::kMaxOciLayers, "the number of layers is bounded");
}

void check_tags(std::string_view text) {
  const auto tags = kiln::parse_oci_tags(text);
  if (!tags) return;
  for (const std::string& tag : *tags) require(kiln::is_oci_reference(tag), "a tag is valid");
}

void check_tar(const std::string& archive) {
  const auto files = kiln::read_tar(kiln::as_bytes(archive), "kiln/");
  if (!files) return;
  std::uint64_t end = kiln::kTarBlock;
  for (const kiln::TarFile& file : *files) {
    require(file.offset == end + kiln::kTarBlock && file.size <= archive.size() - file.offset,
            "files are contiguous and inside the archive");
    end = file.offset + (file.size + kiln::kTarBlock - 1) / kiln::kTarBlock * kiln::kTarBlock;
  }
  require(end + 2 * kiln::kTarBlock == archive.size(), "no bytes follow the end");
}

// A fuzzer does not find the checksums of a tar file by chance: this builds valid headers from the input.
void check_made_tar(std::string_view text) {
  const std::size_t cut = text.find('\0');
  const std::string name(text.substr(0, cut));
  const std::string_view bytes = cut == std::string_view::npos ? std::string_view() : text.substr(cut + 1);
  auto archive = kiln::write_tar("kiln/", {{name, bytes}, {"kiln/head", bytes.substr(bytes.size() / 2)}});
  if (!archive) return;
  const auto files = kiln::read_tar(kiln::as_bytes(*archive), "kiln/");
  require(files.has_value() && files->size() == 2 && files->at(0).name == name &&
              archive->substr(files->at(0).offset, files->at(0).size) == bytes,
          "a tar file round-trips");
  // Then one byte is changed. Unless it is file content, the reader must detect it.
  if (bytes.size() < 2) return;
  (*archive)[(static_cast<std::size_t>(bytes[0]) * 251 + static_cast<unsigned char>(bytes[1])) % archive->size()] ^= 1;
  check_tar(*archive);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] == 255 ? 6 : data[0] % 6) {
    case 0: check_index(text); break;
    case 1: check_manifest(text); break;
    case 2: check_config(text); break;
    case 3: check_tar(std::string(text)); break;
    case 4: check_made_tar(text); break;
    case 5: (void)kiln::parse_oci_layout_file(text); break;
    default: check_tags(text); break;
  }
  return 0;
}
