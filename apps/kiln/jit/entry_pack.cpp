// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/entry_pack.hpp"

#include <algorithm>

#include "backends/source_scan.hpp"
#include "base/codec.hpp"
#include "base/error.hpp"

namespace kiln::jit {
namespace {

constexpr std::string_view kPackMagic = "KILNJITE";
constexpr std::uint32_t kPackVersion = 1;
constexpr std::uint8_t kExecutable = 1;
constexpr std::uint8_t kRewritten = 2;
constexpr std::size_t kSmallestFile = 4 + 1 + 1 + 8;

Error corrupt_pack(const std::string& reason) {
  return make_error(Code::Corrupt, "the packed entry is corrupt: " + reason);
}

// Returns whether a path of a file is also the directory of another file.
bool has_file_as_directory(const std::vector<PackedFile>& files) {
  const auto by_path = [](const PackedFile& file, std::string_view path) { return file.path < path; };
  for (const PackedFile& file : files) {
    for (std::size_t slash = file.path.find('/'); slash != std::string_view::npos;
         slash = file.path.find('/', slash + 1)) {
      const std::string_view directory = file.path.substr(0, slash);
      const auto at = std::lower_bound(files.begin(), files.end(), directory, by_path);
      if (at != files.end() && at->path == directory) return true;
    }
  }
  return false;
}

}  // namespace

std::string encode_pack(const EntryPack& pack) {
  BinaryWriter out;
  out.raw(kPackMagic.data(), kPackMagic.size());
  out.u32(kPackVersion).u8(pack.kind == Rule::Kind::File ? 1 : 0).u32(static_cast<std::uint32_t>(pack.files.size()));
  for (const PackedFile& file : pack.files) {
    const int flags = (file.executable ? kExecutable : 0) | (file.rewritten ? kRewritten : 0);
    out.text(file.path).u8(static_cast<std::uint8_t>(flags)).u64(file.bytes.size());
    out.raw(file.bytes.data(), file.bytes.size());
  }
  return std::move(out).bytes();
}

Result<EntryPack> decode_pack(std::string_view bytes) {
  BinaryReader in(bytes);
  if (in.raw(kPackMagic.size()) != kPackMagic) return corrupt_pack("wrong magic");
  if (const std::uint32_t version = in.u32(); in.ok() && version != kPackVersion) {
    return make_error(Code::Unsupported, "the packed entry has version " + std::to_string(version) +
                                             "; this version of kiln reads version 1");
  }
  EntryPack pack;
  const std::uint8_t kind = in.u8();
  if (kind > 1) return corrupt_pack("unknown kind");
  pack.kind = kind == 1 ? Rule::Kind::File : Rule::Kind::Folder;
  const std::uint32_t count = in.count(kSmallestFile);
  if (!in.ok() || count == 0 || count > kMaxPackFiles || (kind == 1 && count != 1))
    return corrupt_pack("invalid number of files");
  pack.files.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    PackedFile file;
    file.path = in.text();
    const std::uint8_t flags = in.u8();
    const std::uint64_t size = in.u64();
    if (!in.ok() || size > in.left()) return corrupt_pack("truncated");
    file.bytes = in.raw(size);
    if (flags > (kExecutable | kRewritten)) return corrupt_pack("unknown flag");
    if (!is_safe_path(file.path)) return corrupt_pack("a path is not a relative path below the entry");
    if (std::count(file.path.begin(), file.path.end(), '/') >= static_cast<std::ptrdiff_t>(kMaxPackDepth))
      return corrupt_pack("a path has more than 32 components");
    if (kind == 1 && file.path.find('/') != std::string_view::npos) return corrupt_pack("a file has a directory");
    if (!pack.files.empty() && pack.files.back().path >= file.path) return corrupt_pack("paths out of order");
    file.executable = (flags & kExecutable) != 0;
    file.rewritten = (flags & kRewritten) != 0;
    pack.files.push_back(file);
  }
  if (!in.at_end()) return corrupt_pack("bytes after the last file");
  if (has_file_as_directory(pack.files)) return corrupt_pack("a file is also a directory");
  return pack;
}

bool is_plain_root(std::string_view root) {
  constexpr std::string_view kSigns = "/-.+@=,:~";
  return root.starts_with('/') && root.size() > 1 && std::all_of(root.begin(), root.end(), [&](char each) {
           return is_word(each) || kSigns.find(each) != std::string_view::npos;
         });
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (std::size_t at = 0;;) {
    const std::size_t next = text.find(from, at);
    result += text.substr(at, next - at);
    if (next == std::string_view::npos) return result;
    result += to;
    at = next + from.size();
  }
}

}  // namespace kiln::jit
