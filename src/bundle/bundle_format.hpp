#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>
#include <kiln/target.hpp>

#include "trust/keys.hpp"
#include "trust/statement.hpp"

namespace kiln {

// The bytes of a bundle, as docs/bundle-format.md has them. Nothing here opens a file, and nothing is believed.

inline constexpr std::size_t kBundlePage = 4096;
inline constexpr std::size_t kBundleRow = 96;
inline constexpr std::size_t kRowsPerPage = kBundlePage / kBundleRow;
inline constexpr std::size_t kRowPrefix = 40;           ///< by which rows are sorted
inline constexpr std::uint32_t kMostBundleGroups = 65;  ///< the description's, and at most 64 of units
inline constexpr std::uint32_t kMostBundlePages = 1 << 18;
inline constexpr std::uint32_t kBundleVersion = 1;
inline constexpr std::uint32_t kForeignBundleVersion = 2;  ///< of bundles that have anything of other systems
inline constexpr std::uint64_t kLargestBundleBlob = std::uint64_t{1} << 30;

/// The error reads on from "a bundle".
Error damaged_bundle(std::string what);

/// To how many bytes a blob may unpack: more is an attack.
constexpr std::uint64_t most_unpacked(std::uint64_t stored) { return 1024 * stored + (std::uint64_t{1} << 20); }

/// Where a blob lies, and what its stored bytes are.
struct BlobPlace {
  enum class Method : std::uint32_t { Raw = 0, Zstd = 1 };
  std::uint32_t group = 0;
  Method method = Method::Raw;
  std::uint64_t offset = 0;  ///< within the group; a multiple of 16
  std::uint32_t stored = 0;
  std::uint32_t raw = 0;
  Digest digest{};  ///< SHA-256 of the stored bytes

  friend bool operator==(const BlobPlace&, const BlobPlace&) = default;
};

/// One row of the index.
struct BundleRow {
  enum class Role : std::uint8_t {
    ByKey = 1,      ///< the digest is a Key, the blob its artifact
    ByUnit = 2,     ///< a UnitKey, and the artifact to serve for a target
    ByRequest = 3,  ///< a RequestKey, and one of its closures
  };
  Digest digest{};
  Role role = Role::ByKey;
  Form form = Form::Cubin;   ///< of Role::ByUnit; else zero in the file
  char variant = 0;          ///< of Role::ByUnit: 'a', 'f' or none
  std::uint32_t number = 0;  ///< of Role::ByUnit the capability, or for OpenCL four bytes of the device's digest; of
                             ///< Role::ByRequest which closure, from 0
  BlobPlace place;
};

/// What the beginning of a bundle says.
struct BundleHeader {
  struct Page {
    Digest digest{};
    std::array<std::uint8_t, kRowPrefix> first{};  ///< the beginning of the page's first row
  };
  std::uint32_t version = kBundleVersion;
  std::uint64_t head_size = 0;  ///< of the header with its padding, and the pages
  std::uint64_t epoch = 0;
  std::string name_space;
  std::uint32_t row_count = 0;
  BlobPlace description;
  std::vector<Page> pages;
  std::vector<std::uint64_t> group_sizes;
  Digest digest{};  ///< of all of the above as it stands in the file: what is signed
  std::optional<Signature> signature;

  std::uint64_t pages_offset() const { return head_size - pages.size() * kBundlePage; }
  Statement statement() const;
};

/// Checks everything that can be checked without the pages, on a copy. `head` may have more behind the head.
/// Code::Corrupt says what is wrong, and which version it has.
Result<BundleHeader> decode_bundle_header(std::span<const std::uint8_t> head);
/// The header with its padding; `header.digest` and `header.signature` are made here, by `key` where one is given.
std::string encode_bundle_header(BundleHeader& header, const SecretKey* key);

std::string encode_row(const BundleRow& row);
Result<BundleRow> decode_row(std::span<const std::uint8_t, kBundleRow> row);
/// Checks a page that has been read against the header: its digest, its order and its rows' fields.
Status check_page(const BundleHeader& header, std::uint32_t number, std::span<const std::uint8_t> page);

/// How many rows a page has.
std::size_t rows_of_page(const BundleHeader& header, std::uint32_t number);

/// The fields of a row that name a target: form, variant and number.
void set_target(BundleRow& row, const Target& target);
/// Whether the row may be for this target. For GPUs it is then; an OpenCL device's whole description is in the blob.
bool may_be_for(const BundleRow& row, const Target& target);
/// The target of a row for a GPU.
Target target_of(const BundleRow& row);

}  // namespace kiln
