// SPDX-License-Identifier: Apache-2.0
#include "session/config/trust_policy_edit.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/files/replace_file.hpp"
#include "base/format.hpp"
#include "base/process/environment.hpp"
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

/// The policy file as it is before the change.
struct CurrentFile {
  std::string text;
  mode_t mode = 0644;
  std::optional<gid_t> group;  // nothing if the file is new
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
  current.group = status.st_gid;
  return current;
}

// Creates the missing directories of the path. Programs of all users read a policy outside the configuration directory
// of this user, such as /etc/kiln/trust.toml; for these `make_directories`, whose parents are private, is not enough.
Status make_directories_of_policy(const std::string& directory) {
  if (is_directory(directory)) return {};
  const std::string own = user_path("XDG_CONFIG_HOME", ".config", "kiln");
  if (!own.empty() && (directory + '/').starts_with(join_path(parent_path(own), ""))) {
    return make_directories(directory);
  }
  if (Status made = make_directories_of_policy(parent_path(directory)); !made) return made;
  return make_directories(directory, 0755);
}

// Locks the directory until its descriptor is closed. Without the lock, one of two keys that are added at the same time
// can be lost. File systems without locks are accepted.
Status lock_directory(int directory, const std::string& path, std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kPoll{20};
  const Deadline deadline(timeout);
  while (flock(directory, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return {};
    if (deadline.remaining().count() == 0) {
      return make_error(Code::TimedOut, "cannot lock " + path +
                                            ": another process holds the lock; wait for other 'kiln trust add' "
                                            "commands, or end the process that 'fuser " +
                                            path + "' names");
    }
    system_clock().sleep(kPoll);
  }
  return {};
}

// Gives the new file the group of the old one, because its mode can let only this group read it.
Status keep_group(int directory, const std::string& temporary, gid_t group, const std::string& path) {
  struct stat status;
  if (fstatat(directory, temporary.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return io_error("cannot stat", path, errno);
  if (status.st_gid == group) return {};
  if (fchownat(directory, temporary.c_str(), static_cast<uid_t>(-1), group, AT_SYMLINK_NOFOLLOW) == 0) return {};
  return make_error(Code::Denied, "cannot keep group " + std::to_string(group) + " of " + path + ": " +
                                      errno_message(errno) + "; run the command as a member of the group or as root");
}

// Publishes the file only if a reader accepts it, with the owners and modes of all directories on its path.
Status publish(int directory, const std::string& path, const std::string& text, const CurrentFile& current) {
  remove_stale_temporaries(directory, file_name(path));
  const std::string temporary = temporary_name(file_name(path));
  if (Status made = create_file(directory, temporary, {text}, Durability::Synced, current.mode); !made) return made;
  Status ready = current.group ? keep_group(directory, temporary, *current.group, path) : Status();
  if (ready) {
    if (const auto policy = read_trust_policy(join_path(parent_path(path), temporary)); !policy) ready = policy.error();
  }
  if (!ready) {
    (void)unlinkat(directory, temporary.c_str(), 0);
    return ready;
  }
  return rename_file(directory, temporary, file_name(path));
}

}  // namespace

Result<bool> add_trusted_key(const std::string& path, const PublicKey& key, const std::vector<std::string>& namespaces,
                             std::chrono::milliseconds lock_timeout) {
  for (const std::string& each : namespaces) {
    if (is_name_space_pattern(each)) continue;
    return make_error(
        Code::InvalidArgument,
        "'" + each + "' is not a valid namespace; use one such as acme/vision, or acme/* for all below acme");
  }
  if (Status made = make_directories_of_policy(parent_path(path)); !made) return std::move(made).error();
  const Result<Fd> directory = open_trusted_directory(parent_path(path));
  if (!directory) return directory.error();
  if (Status locked = lock_directory(directory->get(), parent_path(path), lock_timeout); !locked) {
    return std::move(locked).error();
  }
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
  if (Status published = publish(directory->get(), path, text, *current); !published) {
    return std::move(published).error();
  }
  return true;
}

}  // namespace kiln
