// SPDX-License-Identifier: Apache-2.0
#include "bundle/profile.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "core/recipe.hpp"

namespace kiln {
namespace {

constexpr std::string_view kProfileMark = "profile 1";
constexpr std::size_t kMaxLineLength = 64 << 10;
constexpr std::size_t kMaxDepth = 32;  // kiln's own lines are flat; future members may be nested
constexpr std::size_t kMaxValues = 1000;
constexpr std::uint64_t kMaxProfileBytes = std::uint64_t{256} << 20;
/// Maximum length of a name. It is display text and must leave space for the rest of the line even if every byte is
/// escaped.
constexpr std::size_t kMaxNameLength = 4096;

std::optional<std::string> text_at(const SortedJson& object, const char* name) {
  const SortedJson& value = member_of(object, name);
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

std::optional<Target> target_at(const SortedJson& object) {
  const std::optional<std::string> device = text_at(object, "device");
  const std::optional<std::string> name = text_at(object, "target");
  if (device.has_value() == name.has_value()) return std::nullopt;
  if (device) return device->empty() ? std::nullopt : std::optional(Target::opencl(*device));
  Result<Target> target = Target::parse(*name);
  return target ? std::optional(std::move(*target)) : std::nullopt;
}

std::optional<ProfileEntry> asked_of(std::string_view line) {
  if (line.size() > kMaxLineLength) return std::nullopt;
  const Result<SortedJson> object = parse_json(line, {kMaxDepth, kMaxValues});
  if (!object || text_at(*object, "kiln") != kProfileMark) return std::nullopt;
  std::optional<std::string> unit = text_at(*object, "unit");
  std::optional<std::string> kind = text_at(*object, "kind");
  const std::optional<std::string> key = text_at(*object, "key");
  std::optional<Target> target = target_at(*object);
  if (!unit || !kind || !key || !target) return std::nullopt;
  const std::optional<Digest> digest = Digest::from_hex(*key);
  if (!digest) return std::nullopt;
  return ProfileEntry{std::move(*unit), std::move(*kind), UnitKey{*digest}, std::move(*target)};
}

/// Returns the identity of a request: unit key and target, without names.
std::string identity_of(const UnitKey& key, const Target& target) {
  std::string identity(key.digest.bytes.begin(), key.digest.bytes.end());
  identity += static_cast<char>(target.form);
  return identity + target.architecture;
}

/// Returns true if a writer stopped in the middle of a line. The next line would be appended to that fragment.
bool ends_torn(int file) {
  struct stat status;
  char last = '\n';
  if (fstat(file, &status) != 0 || status.st_size == 0) return false;
  return pread(file, &last, 1, status.st_size - 1) == 1 && last != '\n';
}

Result<Fd> open_to_append(const std::string& path) {
  // Non-blocking, so that the open does not wait for the reader of a pipe. A pipe is rejected below.
  Fd file(open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
  if (!file) return io_error("cannot open", path, errno);
  struct stat status;
  if (fstat(file.get(), &status) != 0) return io_error("cannot stat", path, errno);
  if (!S_ISREG(status.st_mode)) return make_error(Code::Io, path + " is not a regular file");
  return file;
}

/// Writes the line in one call, so that lines of two processes are never interleaved.
Status append_line(int file, const std::string& line, const std::string& path) {
  const std::string text = ends_torn(file) ? '\n' + line : line;
  ssize_t written = -1;
  do {
    written = write(file, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return io_error("cannot write", path, errno);
  if (static_cast<std::size_t>(written) != text.size()) return io_error("cannot write", path, ENOSPC);
  return {};
}

}  // namespace

std::string profile_line(const ProfileEntry& asked) {
  Json object{{"kiln", kProfileMark},
              {"unit", asked.unit.substr(0, kMaxNameLength)},
              {"kind", asked.kind},
              {"key", asked.key.hex()}};
  object[asked.target.form == Form::OpenClBinary ? "device" : "target"] = asked.target.name();
  return json_text(object) + '\n';
}

Profile parse_profile(std::string_view text) {
  Profile profile;
  std::unordered_set<std::string> seen;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    std::optional<ProfileEntry> asked = asked_of(line);
    if (!asked) {
      ++profile.skipped_lines;
      continue;
    }
    ++profile.lines;
    if (seen.insert(identity_of(asked->key, asked->target)).second) profile.entries.push_back(std::move(*asked));
  }
  return profile;
}

Result<Profile> read_profile(const std::string& path) {
  const std::optional<FileStamp> stamp = stamp_of(path.c_str());
  if (stamp && stamp->size > kMaxProfileBytes) {
    return make_error(Code::Io,
                      path + " is larger than 256 MiB, the limit of a profile; remove duplicate lines with 'sort -u'");
  }
  const Result<std::optional<Bytes>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  if (!*bytes) return make_error(Code::Io, "there is no file " + path);
  return parse_profile((*bytes)->view());
}

ProfileRecorder::ProfileRecorder(std::string path, EventEmitter emitter)
    : path_(std::move(path)), emitter_(std::move(emitter)) {}

void ProfileRecorder::note(const Unit& unit, const Target& target) {
  const Target made = effective_target(unit, target);
  const UnitKey key = unit.key();
  Status status;
  {
    const MutexLock lock(mutex_);
    if (failed_ || !noted_.insert(identity_of(key, made)).second) return;
    const std::string line = profile_line({unit.label(), unit.kind(), key, made});
    // Readers would skip a longer line.
    if (line.size() > kMaxLineLength) return;
    if (!file_) {
      Result<Fd> file = open_to_append(path_);
      if (file) file_ = std::move(*file);
      if (!file) status = file.error();
    }
    if (status) status = append_line(file_.get(), line, path_);
    failed_ = !status;
  }
  // Outside the lock, because listeners may be slow.
  if (!status) {
    emitter_.emit(Event::Kind::RecordUnavailable, {},
                  status.error().message + "; requests of this process are no longer recorded");
  }
}

}  // namespace kiln
