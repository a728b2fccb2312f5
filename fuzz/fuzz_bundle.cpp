// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/codec.hpp"
#include "base/hash.hpp"
#include "bundle/bundle.hpp"
#include "bundle/provenance.hpp"
#include "fuzz_check.hpp"

namespace {

using kiln::Bundle;
using kiln::BundleRow;
using kiln::fuzz::require;

constexpr std::size_t kPlace = 56;
constexpr std::size_t kPlaceInRow = 40;

// A fuzzer does not find digests by chance. Correct digests in the description, page entries and header get the input
// past the checks. Input with inconsistent counts stays unchanged.
std::string sealed(std::string bundle) {
  if (bundle.size() < 168) return bundle;
  std::uint32_t pages = 0;
  std::uint32_t groups = 0;
  std::memcpy(&pages, bundle.data() + 96, sizeof pages);
  std::memcpy(&groups, bundle.data() + 104, sizeof groups);
  const std::uint64_t list = 168 + std::uint64_t{pages} * 72 + std::uint64_t{groups} * 8;
  const std::uint64_t header = (list + 128 + 4095) / 4096 * 4096;
  if (header + std::uint64_t{pages} * 4096 > bundle.size()) return bundle;
  for (std::uint32_t i = 0; i < pages; ++i) {
    const std::string page = bundle.substr(header + std::size_t{i} * 4096, 4096);
    const kiln::Digest digest = kiln::sha256(page);
    std::memcpy(bundle.data() + 168 + std::size_t{i} * 72, digest.bytes.data(), 32);
    std::memcpy(bundle.data() + 168 + std::size_t{i} * 72 + 32, page.data(), 40);
  }
  const kiln::Digest digest = kiln::sha256(std::string_view(bundle).substr(0, list));
  std::memcpy(bundle.data() + list, digest.bytes.data(), 32);
  std::memset(bundle.data() + list + 32, 0, 96);  // unsigned
  return bundle;
}

void correct_digest(char* place, const std::vector<std::string>& groups) {
  kiln::BinaryReader in(std::string_view(place, kPlace));
  const std::uint32_t group = in.u32();
  in.u32();
  const std::uint64_t offset = in.u64();
  const std::uint32_t stored = in.u32();
  if (group >= groups.size() || offset > groups[group].size() || stored > groups[group].size() - offset) return;
  const kiln::Digest digest = kiln::sha256(std::string_view(groups[group]).substr(offset, stored));
  std::memcpy(place + 24, digest.bytes.data(), 32);
}

// Builds a bundle from an input that holds only the fields worth mutating: u8 'c', u8 groups, u8 rows, the group sizes
// in units of 16 as u16, the place of the description, the rows, the groups. Everything else is valid: rows sorted,
// digests correct.
std::string expanded(std::string_view input) {
  kiln::BinaryReader in(input);
  in.u8();
  const std::size_t group_count = in.u8() % kiln::kMaxBundleGroups + 1;
  const std::size_t row_count = in.u8();
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < group_count; ++i) sizes.push_back(std::size_t{in.u16()} * 16);
  std::string description(in.raw(kPlace));
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < row_count && in.left() >= kiln::kBundleRow; ++i) {
    rows.emplace_back(in.raw(kiln::kBundleRow));
  }
  std::vector<std::string> groups;
  for (const std::size_t size : sizes) {
    groups.emplace_back(in.raw(std::min(size, in.left())));
    groups.back().resize((groups.back().size() + 15) / 16 * 16, '\0');
  }
  if (description.size() != kPlace) return {};
  const auto same = [](const std::string& a, const std::string& b) { return a.compare(0, 40, b, 0, 40) == 0; };
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end(), same), rows.end());
  for (std::string& row : rows) correct_digest(row.data() + kPlaceInRow, groups);
  correct_digest(description.data(), groups);

  kiln::BundleHeader header;
  header.name_space = "local";
  header.row_count = static_cast<std::uint32_t>(rows.size());
  header.pages.resize((rows.size() + kiln::kRowsPerPage - 1) / kiln::kRowsPerPage);
  for (const std::string& group : groups) header.group_sizes.push_back(group.size());
  std::string bundle = kiln::encode_bundle_header(header, nullptr);
  bundle.replace(112, kPlace, description);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    bundle += rows[i];
    const bool last = i + 1 == rows.size() || (i + 1) % kiln::kRowsPerPage == 0;
    if (last) bundle.resize((bundle.size() + 4095) / 4096 * 4096, '\0');
  }
  for (const std::string& group : groups) bundle += group;
  return sealed(std::move(bundle));
}

void ask(Bundle& bundle, const BundleRow& row, bool verified) {
  switch (row.role) {
    case BundleRow::Role::ByKey: {
      const auto hit = bundle.get({row.digest}, {});
      require(!hit || hit->has_value(), "an indexed entry is found");
      require(!verified || hit.has_value(), "a verified entry is served");
      break;
    }
    case BundleRow::Role::ByUnit: {
      const auto found = bundle.find({row.digest}, target_of(row));
      require(!found || !*found || bundle.get((*found)->key, {}).has_value() || !verified,
              "an entry of a unit is found by its key");
      require(!verified || bundle.targets({row.digest}).has_value(), "a verified bundle lists its targets");
      break;
    }
    case BundleRow::Role::ByRequest:
      require(bundle.dependency_sets({row.digest}, kiln::Store::kMaxDependencySets, {}).has_value() || !verified,
              "a verified bundle returns its dependency sets");
      break;
  }
}

void check(const std::string& bytes) {
  const kiln::Bytes view(nullptr, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  const auto bundle = Bundle::open(kiln::bundle_in_memory(view, "fuzzed"), nullptr);
  if (!bundle) return;
  const bool verified = (*bundle)->verify().has_value();
  const kiln::BundleHeader& header = (*bundle)->header();
  for (std::uint32_t number = 0; number < header.pages.size(); ++number) {
    const std::string page = bytes.substr(header.pages_offset() + std::size_t{number} * 4096, 4096);
    if (!check_page(header, number, kiln::as_bytes(page))) continue;
    for (std::size_t i = 0; i < page_row_count(header, number); ++i) {
      const std::string row = page.substr(i * kiln::kBundleRow, kiln::kBundleRow);
      const auto decoded = kiln::decode_row(
          std::span<const std::uint8_t, kiln::kBundleRow>(kiln::as_bytes(row).data(), kiln::kBundleRow));
      require(decoded && kiln::encode_row(*decoded) == row, "a row round-trips");
      ask(**bundle, *decoded, verified);
    }
  }
  require((*bundle)->members().has_value() || !verified, "a verified bundle can be written again");
  const auto image = (*bundle)->image();
  require(image.has_value() && image->to_file() == bytes, "a bundle returns the bytes it was opened with");
}

void check_description(std::string_view text) {
  const auto description = kiln::BundleDescription::parse(text);
  if (!description) return;
  const auto again = kiln::BundleDescription::parse(description->encode());
  require(again.has_value() && again->artifacts == description->artifacts, "a description round-trips");
  require(again->provenance == description->provenance, "a provenance round-trips");
}

void check_provenance(const std::string& text) {
  const kiln::Digest index = kiln::sha256("an index");
  kiln::ProvenanceSource from;
  from.statement = text;
  const auto statement = kiln::provenance_statement(from, {}, index);
  if (!statement) return;
  const auto provenance = kiln::Provenance::parse(*statement);
  require(provenance && provenance->is_about(index), "a written statement is about the bundle");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with('c')) {
    check(expanded(input));
  } else if (input.starts_with('{')) {
    check_description(input);
    check_provenance(input);
  } else {
    check(input);
    check(sealed(input));
  }
  return 0;
}
