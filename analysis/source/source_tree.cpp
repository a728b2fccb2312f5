// SPDX-License-Identifier: Apache-2.0
#include "analysis/source/source_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <tuple>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"

namespace kiln::source {
namespace {

constexpr std::array<std::string_view, 12> kCudaEndings = {".cu",  ".cuh", ".cpp", ".cc", ".cxx", ".c++",
                                                           ".hpp", ".hxx", ".hh",  ".h",  ".inl", ".hip"};
constexpr std::array<std::string_view, 14> kIgnored = {
    ".git",        ".hg",  ".svn", "build",       "node_modules",  ".venv", "venv",
    "__pycache__", ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".eggs", ".cache"};

/// A search below one directory. Not thread-safe.
class Search {
 public:
  Search(const TraceNames& names, const SearchLimits& limits, const Clock& clock, SourceReport& out)
      : names_(names), limits_(limits), clock_(clock), end_(clock.steady() + limits.max_time), out_(out) {}

  void directory(int fd, const std::string& prefix, std::size_t depth) {
    Result<std::vector<std::string>> names = read_directory(fd, ".");
    if (!names) {
      ++out_.unreadable;
      return;
    }
    std::sort(names->begin(), names->end());
    entries_ += names->size();
    for (const std::string& name : *names) {
      if (is_over()) return;
      entry(fd, name, prefix, depth);
    }
  }

 private:
  bool is_over() {
    if (!out_.stopped.empty()) return true;
    if (out_.files >= limits_.max_files) out_.stopped = "the limit of files";
    if (entries_ > limits_.max_entries) out_.stopped = "the limit of directory entries";
    if (clock_.steady() >= end_) out_.stopped = "the limit of time";
    return !out_.stopped.empty();
  }

  void entry(int parent, const std::string& name, const std::string& prefix, std::size_t depth) {
    struct stat status;
    if (fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      ++out_.unreadable;
    } else if (S_ISLNK(status.st_mode)) {
      ++out_.links;
    } else if (S_ISDIR(status.st_mode)) {
      enter(parent, name, prefix, depth);
    } else if (const auto language = language_of(name); language && S_ISREG(status.st_mode)) {
      file(parent, name, prefix, *language);
    }
  }
  void enter(int parent, const std::string& name, const std::string& prefix, std::size_t depth) {
    if (is_ignored_directory(name)) {
      ++out_.ignored;
      return;
    }
    // The entry can have been replaced since fstatat: the flags decide.
    const Fd fd(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!fd || depth >= limits_.max_depth) {
      ++out_.unreadable;
      return;
    }
    directory(fd.get(), prefix + name + '/', depth + 1);
  }
  void file(int parent, const std::string& name, const std::string& prefix, Language language) {
    const Fd fd(openat(parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status;
    if (!fd || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
      ++out_.unreadable;
      return;
    }
    if (status.st_size < 0 || static_cast<std::uint64_t>(status.st_size) > limits_.max_file_bytes) {
      ++out_.too_large;
      return;
    }
    const Result<Bytes> bytes = read_all(fd.get(), static_cast<std::size_t>(status.st_size), name);
    if (!bytes) {
      ++out_.unreadable;
      return;
    }
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    if (text.find('\0') != std::string_view::npos) {
      ++out_.binary;
      return;
    }
    ++out_.files;
    add(scan_source(text, language, names_), prefix + name);
  }
  void add(FileScan scan, const std::string& path) {
    out_.suppressed += scan.suppressed;
    for (Hit& hit : scan.hits) {
      hit.file = path;
      out_.hits.push_back(std::move(hit));
    }
    if (out_.implementations.size() < 100'000) {
      std::move(scan.implementations.begin(), scan.implementations.end(), std::back_inserter(out_.implementations));
    }
    // A trace can raise the rank of a hit only later, so that hits with names of the trace stay.
    if (out_.hits.size() > 2 * limits_.max_hits) limit();
  }

 public:
  void limit() {
    if (out_.hits.size() <= limits_.max_hits) return;
    const auto middle = out_.hits.begin() + static_cast<std::ptrdiff_t>(limits_.max_hits);
    std::nth_element(out_.hits.begin(), middle, out_.hits.end(), [](const Hit& one, const Hit& other) {
      const auto is_named = [](const Hit& hit) {
        return !hit.mentions.kernels.empty() || !hit.mentions.operations.empty();
      };
      if (is_named(one) != is_named(other)) return is_named(one);
      return ranks_before(one, other);
    });
    out_.dropped += out_.hits.size() - limits_.max_hits;
    out_.hits.erase(middle, out_.hits.end());
  }

 private:
  const TraceNames& names_;
  const SearchLimits& limits_;
  const Clock& clock_;
  const std::chrono::nanoseconds end_;
  SourceReport& out_;
  std::size_t entries_ = 0;
};

}  // namespace

std::optional<Language> language_of(std::string_view name) {
  if (name.ends_with(".py")) return Language::Python;
  const bool cuda = std::any_of(kCudaEndings.begin(), kCudaEndings.end(),
                                [&](std::string_view ending) { return name.ends_with(ending); });
  return cuda ? std::optional(Language::Cuda) : std::nullopt;
}

bool is_ignored_directory(std::string_view name) {
  return std::find(kIgnored.begin(), kIgnored.end(), name) != kIgnored.end();
}

bool ranks_before(const Hit& one, const Hit& other) {
  return std::tuple(one.findings.empty(), other.loops, one.rail, std::string_view(one.file), one.line) <
         std::tuple(other.findings.empty(), one.loops, other.rail, std::string_view(other.file), other.line);
}

Result<SourceReport> search_directory(const std::string& directory, const TraceNames& names, const SearchLimits& limits,
                                      const Clock& clock) {
  const Fd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) {
    Error error = io_error("cannot search", directory, errno);
    error.message += "; --source takes a directory with sources";
    return error;
  }
  SourceReport out;
  out.directory = directory;
  Search search(names, limits, clock, out);
  search.directory(fd.get(), {}, 0);
  search.limit();
  std::sort(out.hits.begin(), out.hits.end(), ranks_before);
  return out;
}

}  // namespace kiln::source
