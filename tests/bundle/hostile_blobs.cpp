// SPDX-License-Identifier: Apache-2.0
#include <zstd.h>

#include "bundle/hostile_corpus.hpp"

namespace kiln::test {
namespace {

using Method = BlobLocation::Method;

std::string packed(const std::string& raw, int checksum = 0) {
  std::string out(ZSTD_compressBound(raw.size()), '\0');
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, checksum);
  out.resize(ZSTD_compress2(context, out.data(), out.size(), raw.data(), raw.size()));
  ZSTD_freeCCtx(context);
  return out;
}

std::string packed_without_size(const std::string& raw) {
  std::string out(ZSTD_compressBound(raw.size()), '\0');
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  out.resize(ZSTD_compress2(context, out.data(), out.size(), raw.data(), raw.size()));
  ZSTD_freeCCtx(context);
  return out;
}

/// The artifact of a.cu for sm_80 in a different compressed form.
Hostile frame(std::string name, std::string reason, std::function<std::string(const std::string&)> pack,
              std::int64_t more = 0) {
  return {std::move(name), Stage::Asked, std::move(reason), [=](Forge& forge) {
            const BundleMember member = members()[0];
            const BlobLocation old = forge.row(forge.find(Role::ByKey, &member.key.digest)).location;
            const std::string raw = encode_artifact_blob(member.key, member.request, member.artifact);
            const auto size = static_cast<std::size_t>(static_cast<std::int64_t>(raw.size()) + more);
            forge.replace(old, forge.append(old.group, pack(raw), Method::Zstd, size));
            return forge.build();
          }};
}

/// The same artifact with different contents.
Hostile contents(std::string name, std::string reason, std::function<void(std::string&)> change) {
  return {std::move(name), Stage::Asked, std::move(reason), [=](Forge& forge) {
            const BundleMember member = members()[0];
            const BlobLocation old = forge.row(forge.find(Role::ByKey, &member.key.digest)).location;
            std::string raw = encode_artifact_blob(member.key, member.request, member.artifact);
            change(raw);
            forge.replace(old, forge.append(old.group, raw));
            return forge.build();
          }};
}

Hostile dependency_set(std::string name, std::string reason, std::string bytes) {
  return {std::move(name), Stage::Asked, std::move(reason), [=](Forge& forge) {
            const BlobLocation old = forge.row(forge.find(Role::ByRequest)).location;
            forge.replace(old, forge.append(old.group, bytes));
            return forge.build();
          }};
}

Hostile description(std::string name, std::string reason, std::function<void(BundleDescription&)> change) {
  return {std::move(name), Stage::Verified, std::move(reason), [=](Forge& forge) {
            BundleDescription about = open_bytes(forge.build()).value()->description().value();
            change(about);
            forge.describe(about.encode());
            return forge.build();
          }};
}

}  // namespace

std::vector<Hostile> hostile_frames() {
  const auto keep = [](const std::string& raw) { return packed(raw); };
  return {
      frame("frame_larger_than_said", "not a single zstd frame", keep, -1),
      frame("frame_smaller_than_said", "not a single zstd frame", keep, 1),
      frame("frame_bomb", "not a single zstd frame",
            [](const std::string&) { return packed(std::string(64 << 20, '\0')); }),
      frame("frame_without_size", "not a single zstd frame", &packed_without_size),
      frame("frame_cut_short", "not a single zstd frame",
            [](const std::string& raw) {
              std::string bytes = packed(raw);
              bytes.resize(bytes.size() / 2);
              return bytes;
            }),
      frame("two_frames", "not a single zstd frame",
            [](const std::string& raw) { return packed(raw) + packed("more"); }),
      frame("bytes_behind_a_frame", "not a single zstd frame",
            [](const std::string& raw) { return packed(raw) + "more"; }),
      frame("skippable_frame", "not a single zstd frame",
            [](const std::string&) { return std::string("\x50\x2a\x4d\x18\x04\x00\x00\x00more", 12); }),
      frame("no_frame", "not a single zstd frame", [](const std::string& raw) { return raw; }),
      frame("frame_with_a_wrong_checksum", "cannot be decompressed",
            [](const std::string& raw) {
              std::string bytes = packed(raw, 1);
              bytes.back() ^= 1;
              return bytes;
            }),
  };
}

std::vector<Hostile> hostile_contents() {
  return {
      contents("another_key_inside", "artifact key does not match its index row",
               [](std::string& raw) { raw[0] ^= 1; }),
      contents("metadata_longer_than_blob", "shorter than its artifact header states",
               [](std::string& raw) { raw[67] = '\x7f'; }),
      contents("artifact_reserved", "nonzero padding", [](std::string& raw) { raw[68] = 1; }),
      contents("metadata_version", "unknown version 9", [](std::string& raw) { raw[72] = 9; }),
      contents("artifact_cut_short", "shorter than its artifact header states",
               [](std::string& raw) { raw.resize(60); }),
      contents("artifact_with_a_log", "contains a cost or a log",
               [](std::string& raw) {
                 const BundleMember member = members()[0];
                 const std::string metadata = encode_metadata(member.artifact);
                 BinaryWriter out;
                 out.digest(member.key.digest).digest(member.request.digest);
                 out.u32(static_cast<std::uint32_t>(metadata.size())).u32(0).raw(metadata.data(), metadata.size());
                 raw = out.bytes() + std::string(16, '\0');
               }),
      contents("another_target_inside", "artifact target does not match its index row",
               [](std::string& raw) {
                 BundleMember member = members()[0];
                 member.artifact.target = Target::sm(75);
                 raw = encode_artifact_blob(member.key, member.request, member.artifact);
               }),
      contents("another_systems_inside", "artifact of an external system in a bundle of format version 1",
               [](std::string& raw) {
                 BundleMember member = members()[0];
                 member.artifact.target = Target::external("triton");
                 raw = encode_artifact_blob(member.key, member.request, member.artifact);
               }),
      dependency_set("closure_version", "dependency set: unknown version 7",
                     std::string("\x07\x00\x00\x00\x00\x00", 6)),
      dependency_set("closure_with_endless_items", "truncated", std::string("\x01\x00\xff\xff\xff\xff", 6)),
      whole("key_of_another", Stage::Asked, "artifact key does not match its index row",
            [](Forge& forge) {
              const std::size_t one = forge.find(Role::ByKey, &members()[0].key.digest);
              const std::size_t two = forge.find(Role::ByKey, &members()[2].key.digest);
              forge.rows[one].replace(kRowPrefix, std::string::npos, forge.rows[two].substr(kRowPrefix));
              return forge.build();
            }),
  };
}

std::vector<Hostile> hostile_wholes() {
  using F = Forge;
  return {
      whole("overlap", Stage::Verified, "overlapping blobs",
            [](Forge& forge) {
              // A row with a blob that is inside another blob.
              const std::size_t i = forge.find(Role::ByUnit, &members()[2].unit.digest);
              BundleRow changed = forge.row(i);
              changed.location.offset += 16;
              changed.location.stored -= 16;
              changed.location.raw = changed.location.stored;
              changed.location.method = Method::Raw;
              changed.location.digest =
                  sha256(forge.groups[changed.location.group].substr(changed.location.offset, changed.location.stored));
              forge.rows[i] = encode_row(changed);
              return forge.build();
            }),
      whole("gap", Stage::Verified, "unreferenced bytes between blobs",
            [](Forge& forge) {
              const BlobLocation old = forge.row(forge.find(Role::ByKey, &members()[2].key.digest)).location;
              const std::string stored = forge.groups[old.group].substr(old.offset, old.stored);
              forge.replace(old, forge.append(old.group, stored, old.method, old.raw));
              return forge.build();
            }),
      whole("smuggled", Stage::Verified, "trailing bytes after the blobs",
            [](Forge& forge) {
              forge.append(2, "unreferenced data");
              return forge.build();
            }),
      whole("padding_of_a_blob", Stage::Verified, "padding after a blob",
            [](Forge& forge) {
              forge.describe("x");
              forge.groups[0].back() = 1;
              return forge.build();
            }),
      whole("unit_served_by_another", Stage::Verified, "rows and description disagree",
            [](Forge& forge) {
              const std::size_t one = forge.find(Role::ByUnit, &members()[0].unit.digest);
              const std::size_t two = forge.find(Role::ByUnit, &members()[2].unit.digest);
              forge.rows[one].replace(F::kGroup, std::string::npos, forge.rows[two].substr(F::kGroup));
              return forge.build();
            }),
      {"closure_of_no_artifact",
       Stage::Verified,
       "description does not match its artifacts",
       [](Forge& forge) {
         const BlobLocation old = forge.row(forge.find(Role::ByRequest)).location;
         forge.groups[old.group].resize(old.offset);
         forge.replace(old, forge.append(old.group, dependency_set_number(9, 1).encode()));
         return forge.build();
       },
       {members()[0]}},
  };
}

std::vector<Hostile> hostile_descriptions() {
  return {
      whole("no_description", Stage::Verified, "is not valid JSON at byte 2",
            [](Forge& forge) {
              forge.describe("nonsense");
              return forge.build();
            }),
      whole("description_that_is_a_list", Stage::Verified, "is not a JSON object",
            [](Forge& forge) {
              forge.describe("[]");
              return forge.build();
            }),
      whole("description_of_brackets", Stage::Verified, "is nested too deeply",
            [](Forge& forge) {
              forge.describe(std::string(1000, '['));
              return forge.build();
            }),
      whole("description_of_another_version", Stage::Verified, "has format 'bundle description 2'",
            [](Forge& forge) {
              forge.describe(R"({"kiln": "bundle description 2"})");
              return forge.build();
            }),
      description("description_of_other_bytes", "description does not match its artifacts",
                  [](BundleDescription& about) { about.artifacts[0].bytes += 1; }),
      description("description_of_another_unit", "description does not match its artifacts",
                  [](BundleDescription& about) { about.artifacts[0].unit = "harmless.cu"; }),
      description("description_of_another_entry", "description does not match its artifacts",
                  [](BundleDescription& about) { about.artifacts[0].entries[0].name = "harmless"; }),
      description("description_of_another_file", "description does not match its artifacts",
                  [](BundleDescription& about) { about.artifacts[0].files[0].name = "harmless.h"; }),
      description("description_of_another_unit_key", "rows and description disagree",
                  [](BundleDescription& about) { about.artifacts[0].unit_key.digest.bytes[0] ^= 1; }),
      description("description_lacks_one", "rows and description disagree",
                  [](BundleDescription& about) { about.artifacts.pop_back(); }),
      description("description_has_one_twice", "rows and description disagree",
                  [](BundleDescription& about) { about.artifacts.push_back(about.artifacts[0]); }),
      description("description_has_one_more", "lists a missing artifact",
                  [](BundleDescription& about) { about.artifacts[0].key = key_number(1); }),
  };
}

}  // namespace kiln::test
