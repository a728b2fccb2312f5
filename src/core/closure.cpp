#include "core/closure.hpp"

#include <sys/stat.h>

#include <algorithm>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "core/closure_encoding.hpp"

namespace kiln {
namespace {

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

std::vector<Closure::Nesting> nestings_of(const Places& places) {
  std::vector<Closure::Nesting> nestings;
  for (std::size_t inner = 0; inner < places.roots.size(); ++inner) {
    const std::string path = tidy_path(places.roots[inner].path);
    if (path.empty() || path.front() != '/') {
      nestings.push_back({Closure::kWorkingDirectory, static_cast<std::uint16_t>(inner), path});
    }
    for (std::size_t outer = 0; outer < places.roots.size(); ++outer) {
      const std::string above = tidy_path(places.roots[outer].path);
      if (outer == inner || !path.starts_with(above) || above.empty()) continue;
      if (path.size() > above.size() && above != "/" && path[above.size()] != '/') continue;
      nestings.push_back(
          {static_cast<std::uint16_t>(outer), static_cast<std::uint16_t>(inner), path.substr(above.size())});
    }
  }
  return nestings;
}

bool Closure::of_this_host() const {
  return located || timed ||
         std::any_of(items.begin(), items.end(), [](const Item& item) { return item.root == kAbsolute; });
}

std::string Closure::encode() const {
  Writer out;
  out.reserve(64 + items.size() * 96);
  write_closure(out, *this);
  return std::move(out).bytes();
}

namespace {

void decode_bonds(Reader& in, Closure& closure) {
  const std::uint32_t twins = in.count(9);
  for (std::uint32_t i = 0; i < twins && in.ok(); ++i) {
    Closure::Twins pair;
    pair.first = in.u32();
    pair.second = in.u32();
    const std::uint8_t one_file = in.u8();
    pair.one_file = one_file == 1;
    if (pair.first >= closure.items.size() || pair.second >= closure.items.size() || one_file > 1) in.fail();
    closure.twins.push_back(pair);
  }
  const std::uint32_t nestings = in.count(8);
  for (std::uint32_t i = 0; i < nestings && in.ok(); ++i) {
    Closure::Nesting nesting;
    nesting.outer = in.u16();
    nesting.inner = in.u16();
    nesting.below = in.text();
    closure.nestings.push_back(std::move(nesting));
  }
  if (twins == 0 && nestings == 0) in.fail();  // there is one way to write a closure
}

}  // namespace

Result<Closure> Closure::decode(std::string_view bytes) {
  Reader in(bytes);
  Closure closure;
  const std::uint8_t version = in.u8();
  const std::uint8_t flags = in.u8();
  if (!in.ok() || version != kClosureVersion || flags > 7) {
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
    Item& item = closure.items.emplace_back();
    item.root = in.u16();
    const std::uint8_t state = in.u8();
    if (state < 1 || state > 4) in.fail();
    item.state = static_cast<State>(state);
    item.name = in.text();
    if (item.name.find('\0') != std::string::npos) in.fail();
    if (item.state == State::Read || item.state == State::Sealed) item.digest = in.digest();
    if (closure.timed) item.modified_s = static_cast<std::int64_t>(in.u64());
  }
  if ((flags & 4) != 0) decode_bonds(in, closure);
  if (!in.done()) return failure(Code::Corrupt, "a closure that is cut short or has something behind it");
  return closure;
}

namespace {

std::optional<Mismatch> check_nestings(const Closure& closure, const Places& places) {
  if (closure.nestings.empty()) return std::nullopt;
  const std::vector<Closure::Nesting> now = nestings_of(places);
  for (const Closure::Nesting& nesting : closure.nestings) {
    if (std::find(now.begin(), now.end(), nesting) != now.end()) continue;
    return Mismatch{{}, places.working_directory, std::nullopt, "the include folders lay otherwise in one another"};
  }
  return std::nullopt;
}

std::optional<Mismatch> check_twins(const Closure::Twins& pair, const Closure& closure, const Places& places) {
  const Closure::Item& second = closure.items[pair.second];
  const std::string first_path = places.path_of(closure.items[pair.first].root, closure.items[pair.first].name);
  const std::string second_path = places.path_of(second.root, second.name);
  const auto a = stamp_of(first_path.c_str());
  const auto b = stamp_of(second_path.c_str());
  if (a && b && (a->device == b->device && a->inode == b->inode) == pair.one_file) return std::nullopt;
  return Mismatch{second, second_path, std::nullopt,
                  second_path + (pair.one_file ? " was one file with " : " was another file than ") + first_path};
}

std::optional<Mismatch> check_places(const Closure& closure, const Places& places) {
  if (auto mismatch = check_nestings(closure, places)) return mismatch;
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
  for (const Closure::Twins& pair : closure.twins) {
    if (auto mismatch = check_twins(pair, closure, places)) return mismatch;
  }
  return std::nullopt;
}

std::optional<Mismatch> check_items(const Closure& closure, std::span<const std::uint32_t> which, const Places& places,
                                    FileDigests& digests) {
  if (which.empty()) return std::nullopt;
  Paths paths(places);
  for (const std::uint32_t i : which) {
    if (auto mismatch = check_item(closure.items[i], closure.timed, paths, digests)) return mismatch;
  }
  return std::nullopt;
}

std::optional<Mismatch> check_bonds(const Closure& closure, const Places& places) {
  if (auto mismatch = check_places(closure, places)) return mismatch;
  for (const Closure::Twins& pair : closure.twins) {
    if (auto mismatch = check_twins(pair, closure, places)) return mismatch;
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
  for (const Closure::Twins& pair : closure.twins) {
    if (auto mismatch = check_twins(pair, closure, places)) all.push_back(std::move(*mismatch));
  }
  return all;
}

}  // namespace kiln
