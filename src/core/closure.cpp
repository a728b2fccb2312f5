#include "core/closure.hpp"

#include <sys/stat.h>

#include "base/codec.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

constexpr std::uint8_t kVersion = 1;

bool exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

// Absent in a folder's place says the same of every name below it; a folder where a file was looked for is as good as
// no file, and the compiler went on searching.
bool absent(const std::string& path, const std::string& name) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return true;
  return S_ISDIR(status.st_mode) && !name.ends_with('/');
}

std::string describe(const Closure::Item& item, const std::string& path, const std::optional<Digest>& found) {
  switch (item.state) {
    case Closure::State::Read:
      if (!found) return path + " was read then and is not there now";
      if (*found == item.digest) return path + " has another modification time";
      return path + " changed: " + item.digest.hex().substr(0, 12) + " then, " + found->hex().substr(0, 12) + " now";
    case Closure::State::Absent: return path + " was not there then and is there now";
    case Closure::State::Present: return path + " was there then and is not there now";
    case Closure::State::Sealed:
      if (!found) return "the seal " + path + " is gone";
      return "the seal " + path + " changed: " + item.digest.hex().substr(0, 12) + " then, " +
             found->hex().substr(0, 12) + " now";
  }
  return path;
}

// Where each root lies, joined once: a closure has hundreds of names under a handful of roots.
class Paths {
 public:
  explicit Paths(const Places& places) : places_(places) {
    for (const IncludeRoot& root : places.roots) {
      roots_.push_back(join_path(places.working_directory, root.path));
      if (!roots_.back().empty() && roots_.back().back() != '/') roots_.back() += '/';
    }
  }
  // Good until the next call.
  const std::string& of(const Closure::Item& item) {
    if (item.root < roots_.size() && !item.name.starts_with('/')) {
      path_.assign(roots_[item.root]).append(item.name);
    } else {
      path_ = places_.path_of(item.root, item.name);
    }
    return path_;
  }

 private:
  const Places& places_;
  std::vector<std::string> roots_;
  std::string path_;
};

std::optional<Mismatch> check_item(const Closure::Item& item, bool timed, Paths& paths, FileDigests& digests) {
  const std::string& path = paths.of(item);
  std::optional<Digest> found;
  bool same = false;
  switch (item.state) {
    case Closure::State::Read:
    case Closure::State::Sealed: {
      if (const auto seen = digests.look(path)) {
        found = seen->digest;
        same = *found == item.digest && (!timed || seen->stamp.modified_ns / 1'000'000'000 == item.modified_s);
      }
      break;
    }
    case Closure::State::Absent: same = absent(path, item.name); break;
    case Closure::State::Present:
      if (timed) {
        const auto stamp = stamp_of(path.c_str());
        same = stamp && stamp->modified_ns / 1'000'000'000 == item.modified_s;
      } else {
        same = exists(path);
      }
      break;
  }
  if (same) return std::nullopt;
  return Mismatch{item, path, found, describe(item, path, found)};
}

}  // namespace

std::string Places::path_of(std::uint16_t root, std::string_view name) const {
  if (root == Closure::kAbsolute) return std::string(name);
  if (root == Closure::kWorkingDirectory) return join_path(working_directory, name);
  if (root >= roots.size()) return {};
  return join_path(join_path(working_directory, roots[root].path), name);
}

std::string Closure::encode() const {
  Writer out;
  out.reserve(64 + items.size() * 96);
  out.u8(kVersion).u8(static_cast<std::uint8_t>((located ? 1 : 0) | (timed ? 2 : 0)));
  if (located) {
    out.text(working_directory).u32(static_cast<std::uint32_t>(root_paths.size()));
    for (const std::string& path : root_paths) out.text(path);
  }
  out.u32(static_cast<std::uint32_t>(items.size()));
  for (const Item& item : items) {
    out.u16(item.root).u8(static_cast<std::uint8_t>(item.state)).text(item.name);
    if (item.state == State::Read || item.state == State::Sealed) out.digest(item.digest);
    if (timed) out.u64(static_cast<std::uint64_t>(item.modified_s));
  }
  return std::move(out).bytes();
}

Result<Closure> Closure::decode(std::string_view bytes) {
  Reader in(bytes);
  Closure closure;
  const std::uint8_t version = in.u8();
  const std::uint8_t flags = in.u8();
  if (!in.ok() || version != kVersion || flags > 3) {
    return failure(Code::Corrupt, "a closure of unknown version " + std::to_string(version));
  }
  closure.located = (flags & 1) != 0;
  closure.timed = (flags & 2) != 0;
  if (closure.located) {
    closure.working_directory = in.text();
    const std::uint32_t roots = in.count(4);
    for (std::uint32_t i = 0; i < roots && in.ok(); ++i) closure.root_paths.emplace_back(in.text());
  }
  const std::uint32_t count = in.count(7);
  closure.items.reserve(count);
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    Item item;
    item.root = in.u16();
    const std::uint8_t state = in.u8();
    if (state < 1 || state > 4) in.fail();
    item.state = static_cast<State>(state);
    item.name = in.text();
    if (item.name.find('\0') != std::string::npos) in.fail();
    if (item.state == State::Read || item.state == State::Sealed) item.digest = in.digest();
    if (closure.timed) item.modified_s = static_cast<std::int64_t>(in.u64());
    closure.items.push_back(std::move(item));
  }
  if (!in.done()) return failure(Code::Corrupt, "a closure that is cut short or has something behind it");
  return closure;
}

namespace {

std::optional<Mismatch> check_places(const Closure& closure, const Places& places) {
  if (!closure.located) return std::nullopt;
  std::string text;
  if (closure.working_directory != places.working_directory) {
    text = "the working directory was " + closure.working_directory;
  } else if (closure.root_paths.size() != places.roots.size()) {
    text = "the number of include folders changed";
  }
  for (std::size_t i = 0; text.empty() && i < places.roots.size(); ++i) {
    if (closure.root_paths[i] != places.roots[i].path) text = "an include folder was " + closure.root_paths[i];
  }
  if (text.empty()) return std::nullopt;
  return Mismatch{{}, places.working_directory, std::nullopt, text + " (paths are in the output)"};
}

}  // namespace

std::optional<Mismatch> check(const Closure& closure, const Places& places, FileDigests& digests) {
  if (auto mismatch = check_places(closure, places)) return mismatch;
  Paths paths(places);
  for (const Closure::Item& item : closure.items) {
    if (auto mismatch = check_item(item, closure.timed, paths, digests)) return mismatch;
  }
  return std::nullopt;
}

std::vector<Mismatch> mismatches(const Closure& closure, const Places& places, FileDigests& digests) {
  std::vector<Mismatch> all;
  if (auto mismatch = check_places(closure, places)) all.push_back(std::move(*mismatch));
  Paths paths(places);
  for (const Closure::Item& item : closure.items) {
    if (auto mismatch = check_item(item, closure.timed, paths, digests)) all.push_back(std::move(*mismatch));
  }
  return all;
}

}  // namespace kiln
