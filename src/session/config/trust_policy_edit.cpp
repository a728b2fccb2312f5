#include "session/config/trust_policy_edit.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/format.hpp"
#include "session/config/member_reader.hpp"
#include "session/config/trust_policy_file.hpp"
#include "trust/statement.hpp"

namespace kiln {
namespace {

constexpr const char* kFirstLine = "# Keys that programs on this machine trust: 'kiln trust add' adds to this file.\n";

std::string key_table(const PublicKey& key, const std::vector<std::string>& namespaces) {
  const auto quoted = [](const std::string& name_space) { return '"' + name_space + '"'; };
  return "\n[[key]]\npublic = \"" + key.text() + "\"\nnamespaces = [" + join_strings(namespaces, quoted) + "]\n";
}

// Not the process id: in a container it can equal the id of a killed predecessor.
std::string temporary_name(const std::string& name) {
  std::uint64_t own = 0;
  if (getrandom(&own, sizeof own, GRND_NONBLOCK) != sizeof own) {
    own = static_cast<std::uint64_t>(system_clock().steady().count());
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(own));
  return '.' + name + '.' + digits;
}

/// The policy file as it is before the change.
struct CurrentFile {
  std::string text;
  mode_t mode = 0644;
};

Result<CurrentFile> read_current(int directory, const std::string& path) {
  CurrentFile current;
  struct stat status;
  if (fstatat(directory, file_name(path).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno != ENOENT) return io_error("cannot stat", path, errno);
    current.text = kFirstLine;
    return current;
  }
  if (!S_ISREG(status.st_mode)) {
    return make_error(Code::Denied,
                      path + " is not a regular file; give the path of the policy file itself, not a link");
  }
  if (status.st_uid != geteuid()) {
    return make_error(Code::Denied,
                      path + " belongs to user " + std::to_string(status.st_uid) + "; run the command as that user");
  }
  const Result<std::optional<Bytes>> bytes = read_protected_file(path);
  if (!bytes) return make_error(bytes.error().code, path + ": " + bytes.error().message);
  if (*bytes) current.text = (*bytes)->view();
  if (!current.text.empty() && current.text.back() != '\n') current.text += '\n';
  current.mode = status.st_mode & 0755;
  return current;
}

// Publishes the file only if a reader accepts it, with the owners and modes of all directories on its path.
Status publish(int directory, const std::string& path, const std::string& text, mode_t mode) {
  const std::string temporary = temporary_name(file_name(path));
  if (Status made = create_file(directory, temporary, {text}, Durability::Synced, mode); !made) return made;
  const Result<TrustPolicy> readable = read_trust_policy(join_path(parent_path(path), temporary));
  if (!readable) {
    (void)unlinkat(directory, temporary.c_str(), 0);
    return readable.error();
  }
  return rename_file(directory, temporary, file_name(path));
}

}  // namespace

Result<bool> add_trusted_key(const std::string& path, const PublicKey& key,
                             const std::vector<std::string>& namespaces) {
  for (const std::string& each : namespaces) {
    if (is_name_space_pattern(each)) continue;
    return make_error(
        Code::InvalidArgument,
        "'" + each + "' is not a valid namespace; use one such as acme/vision, or acme/* for all below acme");
  }
  if (Status made = make_directories(parent_path(path)); !made) return std::move(made).error();
  const Result<Fd> directory = open_trusted_directory(parent_path(path));
  if (!directory) return directory.error();
  (void)flock(directory->get(), LOCK_EX);  // the lock ends with the descriptor; without it, one of two keys can be lost
  const Result<CurrentFile> current = read_current(directory->get(), path);
  if (!current) return current.error();
  const Result<TrustPolicy> before = parse_trust_policy(current->text);
  if (!before) return make_error(before.error().code, path + ": " + before.error().message);
  if (before->is_revoked(key.id())) {
    return make_error(Code::Denied, path + " has revoked key " + short_id(key.id()) +
                                        "; if it is to be trusted again, remove it from 'revoked' first");
  }
  const std::string text = current->text + key_table(key, namespaces);
  const Result<TrustPolicy> after = parse_trust_policy(text);
  if (!after) return make_error(after.error().code, path + " cannot be extended: " + after.error().message);
  if (after->fingerprint() == before->fingerprint()) return false;
  if (Status published = publish(directory->get(), path, text, current->mode); !published) {
    return std::move(published).error();
  }
  return true;
}

}  // namespace kiln
