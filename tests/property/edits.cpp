// SPDX-License-Identifier: Apache-2.0
// The edits that are made while the compiler runs.
#include "edits.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

// Returns an existing header that exactly one other text includes, so that the compiler searches for it once. Returns
// the number of headers if there is none.
std::size_t header_with_one_includer(const Project& p, Random& random) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < p.headers.size(); ++i) {
    const auto includes = [&](const Project::HeaderFile& other) {
      return std::count(other.children.begin(), other.children.end(), static_cast<int>(i)) != 0;
    };
    const auto includers = std::count_if(p.headers.begin(), p.headers.end(), includes) + (i == 0 ? 1 : 0);
    if (includers == 1 && fs::is_regular_file(p.path_of(i))) found.push_back(i);
  }
  return found.empty() ? p.headers.size() : found[random() % found.size()];
}

// Returns the path of a header in the first include directory that shadows this one.
std::string shadow_path(const Project& p, std::size_t i) { return p.at("r0/" + p.included_as(i)); }

// Returns the same text with another constant. Only one byte differs, so that no reader can see a partial overwrite.
std::string with_other_digit(std::string text, Random& random) {
  static const std::string kBefore = "return x * ";
  const std::size_t at = text.find(kBefore) + kBefore.size() + 2;
  const int digit = text[at] - '0';
  text[at] = static_cast<char>('0' + (digit + 1 + static_cast<int>(random() % 9)) % 10);
  return text;
}

void overwrite(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0 || pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) abort();
  close(fd);
}

void overwrite_and_keep_times(const std::string& path, const std::string& text) {
  struct stat before;
  if (stat(path.c_str(), &before) != 0) abort();
  overwrite(path, text);
  const timespec times[2] = {before.st_atim, before.st_mtim};
  utimensat(AT_FDCWD, path.c_str(), times, 0);
}

void truncate_and_write(const std::string& path, const std::string& text, std::chrono::microseconds pause) {
  const int fd = open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  const std::size_t half = text.size() / 2;
  std::this_thread::sleep_for(pause);
  if (fd < 0 || write(fd, text.data(), half) != static_cast<ssize_t>(half)) abort();
  std::this_thread::sleep_for(pause);
  if (write(fd, text.data() + half, text.size() - half) != static_cast<ssize_t>(text.size() - half)) abort();
  close(fd);
}

void rename_over(const std::string& path, const std::string& text) { write_file(path, text, Mode::ByRename); }

// Returns an edit of the text of one header; `write` performs it.
Edit edit_text(Project& p, Random& random, bool is_atomic,
               const std::function<void(const std::string&, const std::string&)>& write) {
  const std::size_t i = header_with_one_includer(p, random);
  if (i == p.headers.size()) return {};
  // The file that the compiler finds first.
  const std::string path = fs::is_regular_file(shadow_path(p, i)) ? shadow_path(p, i) : p.path_of(i);
  const std::string old_text = file_text(path);
  const std::string new_text = with_other_digit(old_text, random);
  return {is_atomic, [=] { write(path, new_text); }, [=] { write(path, old_text); }};
}

Edit edit_in_place(Project& p, Random& random) { return edit_text(p, random, true, overwrite); }
Edit edit_keeping_times(Project& p, Random& random) { return edit_text(p, random, true, overwrite_and_keep_times); }
Edit edit_by_rename(Project& p, Random& random) { return edit_text(p, random, true, rename_over); }
Edit edit_by_truncation(Project& p, Random& random) {
  const auto pause = std::chrono::microseconds(random() % 2'000);
  return edit_text(p, random, false,
                   [pause](const auto& path, const auto& text) { truncate_and_write(path, text, pause); });
}

Edit shadow(Project& p, Random& random) {
  const std::size_t i = header_with_one_includer(p, random);
  if (i == p.headers.size() || fs::exists(shadow_path(p, i))) return {};
  const std::string path = shadow_path(p, i);
  fs::create_directories(fs::path(path).parent_path());
  const std::string text = with_other_digit(p.text_of(i, true), random);
  return {true, [=] { rename_over(path, text); }, [=] { fs::remove(path); }};
}
Edit remove_shadow(Project& p, Random& random) {
  for (std::size_t i = 0; i < p.headers.size(); ++i) {
    const std::string path = shadow_path(p, i);
    if (!fs::is_regular_file(path)) continue;
    const std::string text = file_text(path);
    return {true, [=] { fs::remove(path); }, [=] { rename_over(path, text); }};
  }
  const Edit created = shadow(p, random);
  if (created.apply) created.apply();
  return {true, created.revert, created.apply};
}

// The header is a link to one of two files, and a rename replaces the link.
Edit retarget_link(Project& p, Random& random) {
  const std::size_t i = header_with_one_includer(p, random);
  if (i == p.headers.size() || fs::is_symlink(p.path_of(i))) return {};
  const std::string path = p.path_of(i);
  const std::string stash = p.at("stash/" + p.headers[i].name);
  const std::string text = file_text(path);
  write_file(stash + ".one", text);
  write_file(stash + ".two", with_other_digit(text, random));
  const auto point_to = [path](const std::string& target) {
    fs::remove(path + ".new");
    fs::create_symlink(target, path + ".new");
    fs::rename(path + ".new", path);
  };
  point_to(stash + ".one");
  return {true, [=] { point_to(stash + ".two"); }, [=] { point_to(stash + ".one"); }};
}

}  // namespace

const std::vector<EditKind>& edit_kinds() {
  // The kinds that keep the inode and the size of the file are listed twice: only timestamps reveal them.
  static const std::vector<EditKind> kinds{
      {"in-place", edit_in_place},
      {"in-place", edit_in_place},
      {"keeping-times", edit_keeping_times},
      {"keeping-times", edit_keeping_times},
      {"rename", edit_by_rename},
      {"truncate", edit_by_truncation},
      {"shadow", shadow},
      {"remove-shadow", remove_shadow},
      {"retarget-link", retarget_link},
  };
  return kinds;
}

}  // namespace kiln::test
