// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/codec.hpp"
#include "bundle/blob.hpp"
#include "support/fixtures/bundles.hpp"

namespace kiln::test {

/// Builds bundles that no writer writes: takes a bundle apart, changes it and reassembles it with correct digests and a
/// correct signature, so that a reader must detect the change itself.
class Forge {
 public:
  /// Offsets of the header fields.
  enum At : std::size_t {
    kVersion = 8,
    kReserved = 12,
    kHeadSize = 16,
    kNameSpace = 32,
    kPageCount = 96,
    kRowCount = 100,
    kGroupCount = 104,
    kSecondReserved = 108,
    kPageEntries = 168,
  };
  /// Offsets of the row fields.
  enum In : std::size_t {
    kRole = 32,
    kForm = 33,
    kVariant = 34,
    kRowReserved = 35,
    kNumber = 36,
    kGroup = 40,
    kMethod = 44,
    kOffset = 48,
    kStored = 56,
    kRaw = 60,
    kDigest = 64,
  };

  explicit Forge(const std::vector<BundleMember>& members) {
    const BundleImage image = image_of(members);
    header = decode_bundle_header(as_bytes(image.head), image.head.size()).value();
    groups = image.groups;
    for (std::size_t i = 0; i < header.row_count; ++i) {
      const std::size_t page = header.pages_offset() + i / kRowsPerPage * kBundlePage;
      rows.push_back(image.head.substr(page + i % kRowsPerPage * kBundleRow, kBundleRow));
    }
  }

  BundleRow row(std::size_t i) const {
    return decode_row(std::span<const std::uint8_t, kBundleRow>(as_bytes(rows[i]).data(), kBundleRow)).value();
  }
  /// Returns the first row with a role and, if given, a digest.
  std::size_t find(BundleRow::Role role, const Digest* digest = nullptr) const {
    std::size_t i = 0;
    while (row(i).role != role || (digest != nullptr && row(i).digest != *digest)) ++i;
    return i;
  }
  template <class T>
  void set(std::size_t i, std::size_t field, T value) {
    std::memcpy(rows[i].data() + field, &value, sizeof value);
  }
  /// Appends a blob to a group.
  BlobLocation append(std::uint32_t group, const std::string& stored, BlobLocation::Method method, std::size_t raw) {
    BlobLocation place;
    place.group = group;
    place.method = method;
    place.offset = groups[group].size();
    place.stored = static_cast<std::uint32_t>(stored.size());
    place.raw = static_cast<std::uint32_t>(raw);
    place.digest = sha256(stored);
    groups[group] += stored;
    groups[group].resize((groups[group].size() + 15) / 16 * 16, '\0');
    return place;
  }
  BlobLocation append(std::uint32_t group, const std::string& raw) {
    return append(group, raw, BlobLocation::Method::Raw, raw.size());
  }
  /// Replaces the blob in every row that refers to it. Removes the old blob if it is the last of its group.
  void replace(const BlobLocation& old, const BlobLocation& place) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      BundleRow changed = row(i);
      if (!(changed.location == old)) continue;
      changed.location = place;
      rows[i] = encode_row(changed);
    }
  }
  void describe(const std::string& text) {
    groups[0].clear();
    header.description = append(0, text);
  }

  /// `lie` changes the page entries after they are correct, `patch` the signed part of the header before it is
  /// digested, and `discard` the finished head.
  std::function<void(BundleHeader&)> lie;
  std::function<void(std::string&)> patch;
  std::function<void(std::string&)> discard;
  std::function<void(std::string& pages)> discard_pages;

  std::string build(const SecretKey* key = nullptr) {
    std::string pages;
    header.pages.clear();
    for (std::size_t at = 0; at < rows.size(); at += kRowsPerPage) {
      std::string page;
      for (std::size_t i = at; i < std::min(at + kRowsPerPage, rows.size()); ++i) page += rows[i];
      page.resize(kBundlePage, '\0');
      pages += page;
    }
    if (discard_pages) discard_pages(pages);
    for (std::size_t at = 0; at < pages.size(); at += kBundlePage) {
      BundleHeader::Page& entry = header.pages.emplace_back();
      entry.digest = sha256(pages.substr(at, kBundlePage));
      std::memcpy(entry.first.data(), pages.data() + at, kRowPrefix);
    }
    header.row_count = static_cast<std::uint32_t>(rows.size());
    header.group_sizes.clear();
    for (const std::string& group : groups) header.group_sizes.push_back(group.size());
    if (lie) lie(header);
    std::string head = encode_bundle_header(header, key);
    if (patch) patch_signed(head, key);
    if (discard) discard(head);
    head += pages;
    return std::accumulate(groups.begin(), groups.end(), head);
  }

  std::size_t signed_size() const { return kPageEntries + header.pages.size() * 72 + header.group_sizes.size() * 8; }

  BundleHeader header;
  std::vector<std::string> rows;
  std::vector<std::string> groups;

 private:
  void patch_signed(std::string& head, const SecretKey* key) {
    std::string signed_part = head.substr(0, signed_size());
    patch(signed_part);
    Statement statement = header.statement();
    statement.digest = sha256(signed_part);
    Signature signature;
    if (key != nullptr) signature = key->sign(statement);
    BinaryWriter trailer;
    trailer.digest(statement.digest).digest(signature.key.digest);
    trailer.raw(signature.bytes.data(), signature.bytes.size());
    head.replace(0, signed_part.size(), signed_part);
    head.replace(signed_part.size(), trailer.bytes().size(), trailer.bytes());
  }
};

}  // namespace kiln::test
