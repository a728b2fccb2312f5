// SPDX-License-Identifier: Apache-2.0
#include "bundle/epoch_memory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/files/replace_file.hpp"
#include "base/hash.hpp"
#include "trust/statement.hpp"

namespace kiln {
namespace {

constexpr std::string_view kEpochMagic = "KILNEPO1";
constexpr std::uint32_t kEpochVersion = 1;
constexpr std::size_t kEpochChecksum = sizeof(std::uint64_t);
constexpr std::size_t kMinEntry = 4 + 1 + 8;  // a length, a name of one character, an epoch
constexpr std::size_t kMaxNameBytes = 64;
constexpr std::size_t kMaxEpochsBytes = 16 + EpochMemory::kMaxNamespaces * (4 + kMaxNameBytes + 8) + kEpochChecksum;

Error corrupt_epochs(const char* what) {
  return make_error(Code::Corrupt, std::string("the file is corrupt: ") + what);
}

/// Returns the bytes of a file that only this user or root can have created or written, or no value if it does not
/// exist.
Result<std::optional<Bytes>> read_own_file(const std::string& path) {
  const auto directory = open_trusted_directory(parent_path(path));
  if (!directory && directory.error().code == Code::Unavailable) return std::optional<Bytes>();
  if (!directory) return directory.error();
  const Fd fd(
      openat(directory->get(), file_name(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  if (!fd && errno == ENOENT) return std::optional<Bytes>();
  if (!fd) return make_error(Code::Io, "cannot open the file: " + errno_message(errno));
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return make_error(Code::Io, "cannot stat the file: " + errno_message(errno));
  if (!S_ISREG(status.st_mode)) return make_error(Code::Denied, "not a regular file");
  const bool is_own = status.st_uid == geteuid() || status.st_uid == 0;
  if (!is_own || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return make_error(Code::Denied, "another user owns the file or can write to it");
  }
  if (static_cast<std::uint64_t>(status.st_size) > kMaxEpochsBytes) return corrupt_epochs("too large");
  auto bytes = read_all(fd.get(), static_cast<std::size_t>(status.st_size), path);
  if (!bytes) return std::move(bytes).error();
  return std::optional<Bytes>(std::move(*bytes));
}

}  // namespace

std::string encode_epochs(const Epochs& epochs) {
  BinaryWriter out;
  out.raw(kEpochMagic.data(), kEpochMagic.size()).u32(kEpochVersion).u32(static_cast<std::uint32_t>(epochs.size()));
  for (const auto& [name_space, epoch] : epochs) out.text(name_space).u64(epoch);
  const std::uint64_t checksum = xxh3(as_bytes(out.bytes()));
  return std::move(out.u64(checksum)).bytes();
}

Result<Epochs> decode_epochs(std::string_view file) {
  BinaryReader in(file);
  if (in.raw(kEpochMagic.size()) != kEpochMagic) return corrupt_epochs("wrong magic");
  const std::uint32_t version = in.u32();
  if (in.ok() && version != kEpochVersion) {
    return make_error(Code::Unsupported, "the file has format version " + std::to_string(version) +
                                             "; this kiln reads " + std::to_string(kEpochVersion));
  }
  const std::uint32_t count = in.count(kMinEntry);
  if (!in.ok() || count > EpochMemory::kMaxNamespaces) return corrupt_epochs("too many namespaces");
  Epochs epochs;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::string name_space(in.text());
    const std::uint64_t epoch = in.u64();
    if (!in.ok() || !is_name_space(name_space)) return corrupt_epochs("invalid namespace");
    // Sorted, so that equal contents have equal bytes.
    if (!epochs.empty() && epochs.rbegin()->first >= name_space) return corrupt_epochs("namespaces out of order");
    epochs.emplace_hint(epochs.end(), name_space, epoch);
  }
  const std::uint64_t checksum = in.u64();
  if (!in.at_end()) return corrupt_epochs("wrong length");
  if (checksum != xxh3(as_bytes(file.substr(0, file.size() - kEpochChecksum))))
    return corrupt_epochs("checksum mismatch");
  return epochs;
}

EpochMemory::EpochMemory(std::string path, EventEmitter emitter)
    : path_(std::move(path)), emitter_(std::move(emitter)) {}

void EpochMemory::emit(const std::string& message) {
  if (was_reported_) return;
  was_reported_ = true;
  emitter_.emit(Event::Kind::CacheUnavailable, "epochs", path_ + ": " + message);
}

Epochs EpochMemory::read() {
  const auto bytes = read_own_file(path_);
  auto epochs = !bytes ? Result<Epochs>(bytes.error()) : *bytes ? decode_epochs((*bytes)->view()) : Epochs();
  if (epochs) return std::move(*epochs);
  emit("the epochs that this machine has seen are ignored: " + epochs.error().message);
  return {};
}

void EpochMemory::remember(const std::string& name_space, std::uint64_t epoch) {
  Epochs epochs = read();  // reads again: another process may have written it
  if (epochs.size() >= kMaxNamespaces && !epochs.contains(name_space))
    return emit("the file is full, and further namespaces are not recorded");
  std::uint64_t& highest = epochs[name_space];
  highest = std::max(highest, epoch);
  Status written = make_directories(parent_path(path_));
  if (const auto directory = open_trusted_directory(parent_path(path_)); written && !directory)
    written = directory.error();
  if (written) written = replace_file(path_, encode_epochs(epochs), Durability::Unsynced, 0600);
  if (!written) emit("epochs are not recorded: " + written.error().message);
}

Status EpochMemory::admit(const std::string& name_space, std::uint64_t epoch, bool proven) {
  const MutexLock lock(mutex_);
  const Epochs epochs = read();
  const auto known = epochs.find(name_space);
  if (known != epochs.end() && epoch < known->second) {
    return make_error(Code::Denied,
                      "epoch " + std::to_string(epoch) + " of " + name_space + " is older than " +
                          std::to_string(known->second) +
                          ", which this machine has seen; get a newer bundle, or to allow an older one set "
                          "trust.remember_epochs = false or remove " +
                          path_);
  }
  if (proven && epoch != 0 && (known == epochs.end() || epoch > known->second)) remember(name_space, epoch);
  return {};
}

}  // namespace kiln
