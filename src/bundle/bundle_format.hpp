// SPDX-License-Identifier: Apache-2.0
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

// The bytes of a bundle (docs/internals/formats/bundle.md). Nothing here opens a file or trusts its input.

inline constexpr std::size_t kBundlePage = 4096;
inline constexpr std::size_t kBundleRow = 96;
inline constexpr std::size_t kRowsPerPage = kBundlePage / kBundleRow;
inline constexpr std::size_t kRowPrefix = 40;          ///< sort key of rows
inline constexpr std::uint32_t kMaxBundleGroups = 65;  ///< one for the description and at most 64 for units
inline constexpr std::uint32_t kMaxBundlePages = 1 << 18;
inline constexpr std::uint32_t kBundleVersion = 1;
inline constexpr std::uint32_t kExternalBundleVersion = 2;  ///< version of bundles that contain artifacts of external
                                                            ///< systems
inline constexpr std::uint64_t kMaxBundleBlobBytes = std::uint64_t{1} << 30;

/// Returns `Code::Corrupt` with the message "corrupt bundle: `what`".
Error corrupt_bundle(std::string what);

/// Limits for decompressing and parsing a bundle, because an attacker controls how much a small file expands to.
struct BundleLimits {
  std::uint64_t description;  ///< decompressed bytes of the description
  std::size_t values;         ///< JSON values in the description
  std::uint64_t blob;         ///< decompressed bytes of one artifact or dependency set
  std::uint64_t total;        ///< decompressed bytes of all blobs while the bundle is open

  friend bool operator==(const BundleLimits&, const BundleLimits&) = default;
};
/// Limits for a bundle that the policy trusts or that is part of the program.
inline constexpr BundleLimits kTrustedLimits{256 << 20, 8'000'000, kMaxBundleBlobBytes, UINT64_MAX};
/// Limits for a bundle that the user inspects although it is not trusted. A description then takes less than 200 MiB of
/// memory.
inline constexpr BundleLimits kUntrustedLimits{16 << 20, 500'000, 64 << 20, 512 << 20};

/// The location and the stored form of a blob.
struct BlobLocation {
  enum class Method : std::uint32_t { Raw = 0, Zstd = 1 };
  std::uint32_t group = 0;
  Method method = Method::Raw;
  std::uint64_t offset = 0;  ///< within the group; a multiple of 16
  std::uint32_t stored = 0;
  std::uint32_t raw = 0;
  Digest digest{};  ///< SHA-256 of the stored bytes

  friend bool operator==(const BlobLocation&, const BlobLocation&) = default;
};

/// A row of the index.
struct BundleRow {
  enum class Role : std::uint8_t {
    ByKey = 1,      ///< `digest` is an `ArtifactKey`, the blob is its artifact
    ByUnit = 2,     ///< `digest` is a `UnitKey`, the blob is the artifact for a target
    ByRequest = 3,  ///< `digest` is a `RequestKey`, the blob is one of its dependency sets
  };
  Digest digest{};
  Role role = Role::ByKey;
  Form form = Form::Cubin;   ///< with `Role::ByUnit`; otherwise zero in the file
  char variant = 0;          ///< with `Role::ByUnit`: 'a', 'f' or none
  std::uint32_t number = 0;  ///< with `Role::ByUnit` the compute capability, or four bytes of the digest of an OpenCL
                             ///< device; with `Role::ByRequest` the index of the dependency set, from 0
  BlobLocation location;
};

/// The header of a bundle.
struct BundleHeader {
  struct Page {
    Digest digest{};
    std::array<std::uint8_t, kRowPrefix> first{};  ///< the sort key of the first row of the page
  };
  std::uint32_t version = kBundleVersion;
  std::uint64_t head_size = 0;  ///< bytes of the padded header and the pages
  std::uint64_t epoch = 0;
  std::string name_space;
  std::uint32_t row_count = 0;
  BlobLocation description;
  std::vector<Page> pages;
  std::vector<std::uint64_t> group_sizes;
  Digest digest{};  ///< digest of all fields above as stored in the file; this is signed
  std::optional<Signature> signature;

  std::uint64_t pages_offset() const { return head_size - pages.size() * kBundlePage; }
  Statement statement() const;
};

/// Returns the size of the padded header. `beginning` holds its first bytes; one page is sufficient.
Result<std::size_t> bundle_header_size(std::span<const std::uint8_t> beginning);
/// Decodes the header and checks everything that does not need the pages. `header` has at least `bundle_header_size`
/// bytes. `available` is the size of the source. `Code::Corrupt` states the error and the version.
Result<BundleHeader> decode_bundle_header(std::span<const std::uint8_t> header, std::uint64_t available);
/// Encodes the padded header. Sets `header.digest` and, if `key` is given, `header.signature`.
std::string encode_bundle_header(BundleHeader& header, const SecretKey* key);

std::string encode_row(const BundleRow& row);
Result<BundleRow> decode_row(std::span<const std::uint8_t, kBundleRow> row);
/// Verifies a page against the header: its digest, its order and the fields of its rows.
Status check_page(const BundleHeader& header, std::uint32_t number, std::span<const std::uint8_t> page);

/// Returns the number of rows of a page.
std::size_t page_row_count(const BundleHeader& header, std::uint32_t number);

/// Sets the fields of a row that identify a target: form, variant and number.
void set_target(BundleRow& row, const Target& target);
/// Returns true if the row can be for this target. For GPUs this is exact; for an OpenCL device the blob has the full
/// description.
bool may_match(const BundleRow& row, const Target& target);
/// Returns the target of a row for a GPU.
Target target_of(const BundleRow& row);

}  // namespace kiln
