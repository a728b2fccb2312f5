// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/entry_list.hpp"

#include <algorithm>
#include <utility>

#include "apps/kiln/jit/path_pattern.hpp"
#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"

namespace kiln::jit {
namespace {

constexpr std::string_view kListMagic = "KILNJITL";
constexpr std::uint32_t kListVersion = 1;
constexpr std::size_t kSmallestLine = 4 + 1 + 32 + 8;
constexpr std::size_t kMaxText = 8192;  // of profile, environment and publisher

Error corrupt_list(const std::string& reason) {
  return make_error(Code::Corrupt, "the list of entries is corrupt: " + reason);
}

}  // namespace

std::string EntryList::encode() const {
  BinaryWriter out;
  out.raw(kListMagic.data(), kListMagic.size());
  out.u32(kListVersion).text(profile).text(environment).text(publisher).u32(static_cast<std::uint32_t>(lines.size()));
  for (const Line& line : lines) out.text(line.path).digest(line.digest).u64(line.size);
  return std::move(out).bytes();
}

Result<EntryList> EntryList::decode(std::string_view bytes) {
  if (bytes.size() > kMaxListBytes) return corrupt_list("larger than 4 MiB");
  BinaryReader in(bytes);
  if (in.raw(kListMagic.size()) != kListMagic) return corrupt_list("wrong magic");
  if (const std::uint32_t version = in.u32(); in.ok() && version != kListVersion) {
    return make_error(Code::Unsupported, "the list of entries has version " + std::to_string(version) +
                                             "; this version of kiln reads version 1");
  }
  EntryList list;
  for (std::string* text : {&list.profile, &list.environment, &list.publisher}) {
    const std::string_view value = in.text();
    if (value.size() > kMaxText) return corrupt_list("a text is too long");
    *text = value;
  }
  const std::uint32_t count = in.count(kSmallestLine);
  if (!in.ok() || count > kMaxListLines) return corrupt_list("invalid number of lines");
  list.lines.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    Line line;
    line.path = in.text();
    line.digest = in.digest();
    line.size = in.u64();
    if (!in.ok()) return corrupt_list("truncated");
    if (!is_safe_path(line.path)) return corrupt_list("a path is not a relative path below the root");
    if (!list.lines.empty() && list.lines.back().path >= line.path) return corrupt_list("lines out of order");
    list.lines.push_back(std::move(line));
  }
  if (!in.at_end()) return corrupt_list("bytes after the last line");
  return list;
}

const EntryList::Line* EntryList::find(std::string_view path) const {
  const auto at = std::lower_bound(lines.begin(), lines.end(), path,
                                   [](const Line& line, std::string_view text) { return line.path < text; });
  return at != lines.end() && at->path == path ? &*at : nullptr;
}

bool EntryList::add(const std::vector<Line>& more, bool replace) {
  bool changed = false;
  std::vector<Line> added;
  for (const Line& line : more) {
    const Line* const known = find(line.path);
    if (known == nullptr) {
      added.push_back(line);
    } else if (replace && !(*known == line)) {
      lines[static_cast<std::size_t>(known - lines.data())] = line;
      changed = true;
    }
  }
  if (added.empty()) return changed;
  lines.insert(lines.end(), added.begin(), added.end());
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.path < b.path; });
  return true;
}

std::string list_key(std::string_view profile, std::string_view environment, std::string_view publisher) {
  return "list\n" + std::string(publisher) + "\n" + std::string(profile) + "\n" + sha256(environment).hex();
}

std::string entry_key(const Digest& digest) { return "entry\n" + digest.hex(); }

std::string cache_name(std::string_view system) { return "jit." + std::string(system); }

}  // namespace kiln::jit
