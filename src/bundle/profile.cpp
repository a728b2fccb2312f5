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
constexpr std::size_t kLongestLine = 64 << 10;
constexpr std::size_t kDeepest = 32;  // ours are flat; members to come may not be
constexpr std::uint64_t kLargestProfile = std::uint64_t{1} << 30;
/// A name is for people, and must leave room for the rest however it has to be escaped.
constexpr std::size_t kLongestName = 4096;

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

std::optional<Asked> asked_of(std::string_view line) {
  if (line.size() > kLongestLine) return std::nullopt;
  const Result<SortedJson> object = parse_json(line, kDeepest);
  if (!object || text_at(*object, "kiln") != kProfileMark) return std::nullopt;
  std::optional<std::string> unit = text_at(*object, "unit");
  std::optional<std::string> kind = text_at(*object, "kind");
  const std::optional<std::string> key = text_at(*object, "key");
  std::optional<Target> target = target_at(*object);
  if (!unit || !kind || !key || !target) return std::nullopt;
  const std::optional<Digest> digest = Digest::from_hex(*key);
  if (!digest) return std::nullopt;
  return Asked{std::move(*unit), std::move(*kind), UnitKey{*digest}, std::move(*target)};
}

/// What tells two things apart that may be asked for: of which unit and for what, not how they are called.
std::string identity_of(const UnitKey& key, const Target& target) {
  std::string identity(key.digest.bytes.begin(), key.digest.bytes.end());
  identity += static_cast<char>(target.form);
  return identity + target.architecture;
}

/// Whether somebody was stopped in the middle of a line, so that what is appended now would be a part of it.
bool ends_torn(int file) {
  struct stat status;
  char last = '\n';
  if (fstat(file, &status) != 0 || status.st_size == 0) return false;
  return pread(file, &last, 1, status.st_size - 1) == 1 && last != '\n';
}

Result<Fd> open_to_append(const std::string& path) {
  // Not to wait for the reader of a pipe, which is refused below.
  Fd file(open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
  if (!file) return io_failure("cannot open", path, errno);
  struct stat status;
  if (fstat(file.get(), &status) != 0) return io_failure("cannot look at", path, errno);
  if (!S_ISREG(status.st_mode)) return failure(Code::Io, path + " is no regular file");
  return file;
}

/// All of it in one call: what two processes write at once is then one line and the other, and never a mixture.
Status append_line(int file, const std::string& line, const std::string& path) {
  const std::string text = ends_torn(file) ? '\n' + line : line;
  ssize_t written = -1;
  do {
    written = write(file, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return io_failure("cannot write", path, errno);
  if (static_cast<std::size_t>(written) != text.size()) return io_failure("cannot write", path, ENOSPC);
  return {};
}

}  // namespace

std::string profile_line(const Asked& asked) {
  Json object{{"kiln", kProfileMark},
              {"unit", asked.unit.substr(0, kLongestName)},
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
    std::optional<Asked> asked = asked_of(line);
    if (!asked) {
      ++profile.not_understood;
      continue;
    }
    ++profile.lines;
    if (seen.insert(identity_of(asked->key, asked->target)).second) profile.asked.push_back(std::move(*asked));
  }
  return profile;
}

Result<Profile> read_profile(const std::string& path) {
  const std::optional<FileStamp> stamp = stamp_of(path.c_str());
  if (stamp && stamp->size > kLargestProfile) {
    return failure(Code::Io, path + " has more than 1 GiB: no profile needs that; 'sort -u' makes it smaller");
  }
  const Result<std::optional<Bytes>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  if (!*bytes) return failure(Code::Io, "there is no file " + path);
  return parse_profile((*bytes)->view());
}

ProfileRecorder::ProfileRecorder(std::string path, Observer observer)
    : path_(std::move(path)), observer_(std::move(observer)) {}

void ProfileRecorder::note(const Unit& unit, const Target& target) {
  const Target made = fitted(unit, target);
  const UnitKey key = unit.key();
  Status status;
  {
    const MutexLock lock(mutex_);
    if (failed_ || !noted_.insert(identity_of(key, made)).second) return;
    const std::string line = profile_line({unit.name(), unit.kind(), key, made});
    // Whoever reads it would pass over it, too.
    if (line.size() > kLongestLine) return;
    if (!file_) {
      Result<Fd> file = open_to_append(path_);
      if (file) file_ = std::move(*file);
      if (!file) status = file.error();
    }
    if (status) status = append_line(file_.get(), line, path_);
    failed_ = !status;
  }
  // Not under the lock: whoever is told may take his time.
  if (!status) {
    observer_.tell(Event::Kind::RecordUnavailable, {},
                   status.error().message + "; nothing that this process asks for is recorded any more");
  }
}

}  // namespace kiln
