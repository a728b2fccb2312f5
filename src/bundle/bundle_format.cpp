// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_format.hpp"

#include <algorithm>
#include <cstring>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/zstd_frame.hpp"
#include "core/recipe.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNBDL1";
constexpr std::size_t kNameSpaceField = 64;
constexpr std::size_t kFixedPart = 168;  // bytes of the header before its lists
constexpr std::size_t kPageEntry = 32 + kRowPrefix;
constexpr std::size_t kTrailer = 32 + 32 + 64;
// Small enough that 65 groups and a head can be added without overflow.
constexpr std::uint64_t kMaxGroupBytes = std::uint64_t{1} << 48;
constexpr std::uint32_t kMaxDependencySetRows = 16;

bool all_zero(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
}

struct Counts {
  std::uint32_t pages = 0;
  std::uint32_t rows = 0;
  std::uint32_t groups = 0;

  std::size_t signed_size() const { return kFixedPart + std::size_t{pages} * kPageEntry + std::size_t{groups} * 8; }
  std::size_t header_size() const { return (signed_size() + kTrailer + kBundlePage - 1) / kBundlePage * kBundlePage; }
};

// Decodes the fields that state all sizes, and stores the fields between them in `header`.
Result<Counts> decode_fixed_part(BinaryReader& in, BundleHeader& header) {
  if (in.raw(kMagic.size()) != kMagic) return corrupt_bundle("wrong magic, not a kiln bundle");
  header.version = in.u32();
  if (!in.ok()) return corrupt_bundle("truncated header");
  if (header.version < kBundleVersion || header.version > kExternalBundleVersion) {
    return corrupt_bundle("unsupported format version " + std::to_string(header.version) + "; this kiln reads " +
                          std::to_string(kBundleVersion) + " and " + std::to_string(kExternalBundleVersion));
  }
  std::uint32_t reserved = in.u32();
  header.head_size = in.u64();
  header.epoch = in.u64();
  const std::string_view name_space = in.raw(kNameSpaceField);
  const std::size_t length = std::min(name_space.find('\0'), name_space.size());
  header.name_space = name_space.substr(0, length);
  Counts counts;
  counts.pages = in.u32();
  counts.rows = in.u32();
  counts.groups = in.u32();
  reserved |= in.u32();
  if (!in.ok()) return corrupt_bundle("truncated header");
  if (reserved != 0) return corrupt_bundle("nonzero reserved bytes in the header");
  if (counts.pages > kMaxBundlePages) return corrupt_bundle("too many index pages");
  if (counts.pages != (std::uint64_t{counts.rows} + kRowsPerPage - 1) / kRowsPerPage) {
    return corrupt_bundle("row count does not match the number of index pages");
  }
  if (counts.groups < 1 || counts.groups > kMaxBundleGroups) return corrupt_bundle("invalid number of groups");
  if (!is_name_space(header.name_space) || !all_zero(name_space.substr(length))) {
    return corrupt_bundle("invalid namespace");
  }
  if (header.head_size != counts.header_size() + std::size_t{counts.pages} * kBundlePage) {
    return corrupt_bundle("head size does not match its contents");
  }
  return counts;
}

BlobLocation decode_location(BinaryReader& in) {
  BlobLocation location;
  location.group = in.u32();
  location.method = static_cast<BlobLocation::Method>(in.u32());
  location.offset = in.u64();
  location.stored = in.u32();
  location.raw = in.u32();
  location.digest = in.digest();
  return location;
}

void encode_location(BinaryWriter& out, const BlobLocation& location) {
  out.u32(location.group).u32(static_cast<std::uint32_t>(location.method)).u64(location.offset);
  out.u32(location.stored).u32(location.raw).digest(location.digest);
}

Status check_location(const BlobLocation& location) {
  if (location.offset % 16 != 0) return corrupt_bundle("unaligned blob");
  if (location.stored == 0) return corrupt_bundle("empty blob");
  switch (location.method) {
    case BlobLocation::Method::Raw:
      if (location.raw != location.stored) return corrupt_bundle("blob sizes differ although it is not compressed");
      break;
    case BlobLocation::Method::Zstd:
      if (location.raw > max_unpacked_bytes(location.stored))
        return corrupt_bundle("blob exceeds the maximum compression ratio");
      break;
    default:
      return corrupt_bundle("unknown blob compression method " +
                            std::to_string(static_cast<std::uint32_t>(location.method)));
  }
  if (location.raw > kMaxBundleBlobBytes) return corrupt_bundle("blob is too large");
  return {};
}

Status check_within(const BlobLocation& location, const std::vector<std::uint64_t>& group_sizes) {
  if (location.group >= group_sizes.size()) return corrupt_bundle("blob in a nonexistent group");
  const std::uint64_t size = group_sizes[location.group];
  if (location.offset > size || location.stored > size - location.offset)
    return corrupt_bundle("blob extends beyond its group");
  return {};
}

void decode_lists(BinaryReader& in, const Counts& counts, BundleHeader& header) {
  header.description = decode_location(in);
  header.pages.resize(counts.pages);
  for (BundleHeader::Page& page : header.pages) {
    page.digest = in.digest();
    const std::string_view first = in.raw(kRowPrefix);
    if (first.size() == kRowPrefix) std::memcpy(page.first.data(), first.data(), kRowPrefix);
  }
  header.group_sizes.resize(counts.groups);
  for (std::uint64_t& size : header.group_sizes) size = in.u64();
}

Status check_lists(const BundleHeader& header) {
  for (const std::uint64_t size : header.group_sizes) {
    if (size % 16 != 0 || size > kMaxGroupBytes) return corrupt_bundle("invalid group size");
  }
  if (auto checked = check_location(header.description); !checked) return checked;
  if (header.description.group != 0) return corrupt_bundle("description is not in group 0");
  if (auto checked = check_within(header.description, header.group_sizes); !checked) return checked;
  for (std::size_t i = 1; i < header.pages.size(); ++i) {
    if (!(header.pages[i - 1].first < header.pages[i].first)) return corrupt_bundle("index pages are out of order");
  }
  return {};
}

Status decode_trailer(BinaryReader& in, BundleHeader& header, std::string_view signed_part) {
  header.digest = sha256(signed_part);
  if (in.digest() != header.digest) return corrupt_bundle("header digest mismatch");
  Signature signature;
  signature.key.digest = in.digest();
  const std::string_view bytes = in.raw(signature.bytes.size());
  const bool is_unsigned = signature.key == KeyId();
  if (is_unsigned != all_zero(bytes)) return corrupt_bundle("incomplete signature");
  if (!is_unsigned && bytes.size() == signature.bytes.size()) {
    std::memcpy(signature.bytes.data(), bytes.data(), bytes.size());
    header.signature = signature;
  }
  if (!all_zero(in.raw(in.left()))) return corrupt_bundle("nonzero padding in the header");
  return {};
}

}  // namespace

Error corrupt_bundle(std::string what) { return make_error(Code::Corrupt, "corrupt bundle: " + std::move(what)); }

Statement BundleHeader::statement() const {
  const bool has_external = version == kExternalBundleVersion;
  return {has_external ? std::string(kExternalSubject) + "bundle 1" : "kiln bundle 1", name_space, epoch, digest};
}

Result<std::size_t> bundle_header_size(std::span<const std::uint8_t> beginning) {
  BundleHeader ignored;
  BinaryReader in(beginning);
  const auto counts = decode_fixed_part(in, ignored);
  if (!counts) return counts.error();
  return counts->header_size();
}

Result<BundleHeader> decode_bundle_header(std::span<const std::uint8_t> bytes, std::uint64_t available) {
  const auto size = bundle_header_size(bytes);
  if (!size) return size.error();
  if (*size > bytes.size()) return corrupt_bundle("truncated header");
  BundleHeader header;
  BinaryReader in(bytes.first(*size));
  const auto counts = decode_fixed_part(in, header);
  if (!counts) return counts.error();
  if (header.head_size > available) return corrupt_bundle("truncated head");
  header.row_count = counts->rows;
  decode_lists(in, *counts, header);
  const std::string_view signed_part(reinterpret_cast<const char*>(bytes.data()), counts->signed_size());
  // Checked before the lists: if both are wrong, the error is a digest mismatch, not an invalid header.
  if (auto checked = decode_trailer(in, header, signed_part); !checked) return std::move(checked).error();
  if (auto checked = check_lists(header); !checked) return std::move(checked).error();
  return header;
}

std::string encode_bundle_header(BundleHeader& header, const SecretKey* key) {
  Counts counts{static_cast<std::uint32_t>(header.pages.size()), header.row_count,
                static_cast<std::uint32_t>(header.group_sizes.size())};
  header.head_size = counts.header_size() + header.pages.size() * kBundlePage;
  std::string name_space = header.name_space;
  name_space.resize(kNameSpaceField, '\0');
  BinaryWriter out;
  out.reserve(counts.header_size());
  out.raw(kMagic.data(), kMagic.size()).u32(header.version).u32(0).u64(header.head_size).u64(header.epoch);
  out.raw(name_space.data(), name_space.size());
  out.u32(counts.pages).u32(counts.rows).u32(counts.groups).u32(0);
  encode_location(out, header.description);
  for (const BundleHeader::Page& page : header.pages) out.digest(page.digest).raw(page.first.data(), kRowPrefix);
  for (const std::uint64_t size : header.group_sizes) out.u64(size);
  header.digest = sha256(out.bytes());
  header.signature.reset();
  if (key != nullptr) header.signature = key->sign(header.statement());
  const Signature no_signature;
  const Signature& signature = header.signature ? *header.signature : no_signature;
  out.digest(header.digest).digest(signature.key.digest).raw(signature.bytes.data(), signature.bytes.size());
  std::string bytes = std::move(out).bytes();
  bytes.resize(counts.header_size(), '\0');
  return bytes;
}

std::string encode_row(const BundleRow& row) {
  const bool unit = row.role == BundleRow::Role::ByUnit;
  BinaryWriter out;
  out.digest(row.digest).u8(static_cast<std::uint8_t>(row.role));
  out.u8(unit ? static_cast<std::uint8_t>(row.form) : 0).u8(static_cast<std::uint8_t>(row.variant)).u8(0);
  out.u32(row.number);
  encode_location(out, row.location);
  return std::move(out).bytes();
}

namespace {

Status check_role(const BundleRow& row, std::uint8_t form) {
  const bool opencl = form == static_cast<std::uint8_t>(Form::OpenClBinary);
  switch (row.role) {
    case BundleRow::Role::ByUnit:
      if (form < 1 || form > static_cast<std::uint8_t>(Form::Cccl)) {
        return corrupt_bundle("index row with unknown form " + std::to_string(form));
      }
      if (row.variant != 0 && (opencl || (row.variant != 'a' && row.variant != 'f'))) {
        return corrupt_bundle("index row with an unknown variant");
      }
      if (!opencl && (row.number < 10 || row.number > 9999))
        return corrupt_bundle("index row with an invalid GPU architecture");
      return {};
    case BundleRow::Role::ByKey:
    case BundleRow::Role::ByRequest:
      if (form != 0 || row.variant != 0) return corrupt_bundle("index row with an unexpected target");
      if (row.number >= (row.role == BundleRow::Role::ByKey ? 1 : kMaxDependencySetRows)) {
        return corrupt_bundle("index row with an invalid number");
      }
      return {};
  }
  return corrupt_bundle("index row with unknown role " + std::to_string(static_cast<std::uint8_t>(row.role)));
}

}  // namespace

Result<BundleRow> decode_row(std::span<const std::uint8_t, kBundleRow> bytes) {
  BinaryReader in(bytes);
  BundleRow row;
  row.digest = in.digest();
  row.role = static_cast<BundleRow::Role>(in.u8());
  const std::uint8_t form = in.u8();
  row.variant = static_cast<char>(in.u8());
  const std::uint8_t reserved = in.u8();
  row.number = in.u32();
  row.location = decode_location(in);
  if (auto checked = check_role(row, form); !checked) return checked.error();
  if (reserved != 0) return corrupt_bundle("index row with a nonzero reserved byte");
  if (auto checked = check_location(row.location); !checked) return checked.error();
  if (row.role == BundleRow::Role::ByUnit) row.form = static_cast<Form>(form);
  return row;
}

Status check_page(const BundleHeader& header, std::uint32_t number, std::span<const std::uint8_t> page) {
  if (page.size() != kBundlePage || sha256(page) != header.pages[number].digest) {
    return corrupt_bundle("index page " + std::to_string(number) + " digest mismatch");
  }
  const std::size_t count = page_row_count(header, number);
  const std::uint8_t* before = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* const bytes = page.data() + i * kBundleRow;
    const auto row = decode_row(std::span<const std::uint8_t, kBundleRow>(bytes, kBundleRow));
    if (!row) return row.error();
    if (row->location.group == 0) return corrupt_bundle("index row points to the description");
    if (auto checked = check_within(row->location, header.group_sizes); !checked) return checked;
    if (before == nullptr && std::memcmp(bytes, header.pages[number].first.data(), kRowPrefix) != 0) {
      return corrupt_bundle("header does not match the first row of index page " + std::to_string(number));
    }
    const int order = before == nullptr ? -1 : std::memcmp(before, bytes, kRowPrefix);
    if (order == 0) return corrupt_bundle("duplicate index rows");
    if (order > 0) return corrupt_bundle("index rows are out of order");
    before = bytes;
  }
  if (number + 1 < header.pages.size() && std::memcmp(before, header.pages[number + 1].first.data(), kRowPrefix) >= 0) {
    return corrupt_bundle("index rows are out of order between two pages");
  }
  const std::size_t used = count * kBundleRow;
  if (!all_zero({reinterpret_cast<const char*>(page.data()) + used, page.size() - used})) {
    return corrupt_bundle("index page " + std::to_string(number) + " has trailing bytes after its rows");
  }
  return {};
}

std::size_t page_row_count(const BundleHeader& header, std::uint32_t number) {
  return std::min<std::size_t>(kRowsPerPage, header.row_count - std::size_t{number} * kRowsPerPage);
}

void set_target(BundleRow& row, const Target& target) {
  row.form = target.form;
  row.variant = 0;
  if (target.form == Form::OpenClBinary) {
    const Digest digest = sha256(target.architecture);
    std::memcpy(&row.number, digest.bytes.data(), sizeof row.number);
    return;
  }
  row.number = static_cast<std::uint32_t>(capability_of(target, true).value_or(0));
  const char last = target.architecture.empty() ? '\0' : target.architecture.back();
  if (last == 'a' || last == 'f') row.variant = last;
}

bool may_match(const BundleRow& row, const Target& target) {
  BundleRow wanted;
  set_target(wanted, target);
  return row.form == wanted.form && row.variant == wanted.variant && row.number == wanted.number;
}

Target target_of(const BundleRow& row) {
  std::string architecture = "sm_" + std::to_string(row.number);
  if (row.variant != 0) architecture += row.variant;
  return {std::move(architecture), row.form};
}

}  // namespace kiln
