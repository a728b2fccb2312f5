// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

#include "base/mutex.hpp"
#include "events/event_emitter.hpp"

namespace kiln {

/// Highest epoch by namespace.
using Epochs = std::map<std::string, std::uint64_t>;

/// Returns the bytes of the file; docs/internals/formats/trust.md has the grammar.
std::string encode_epochs(const Epochs& epochs);
/// Returns Code::Corrupt for an invalid or corrupt file and Code::Unsupported for another version. Accepts arbitrary
/// bytes.
Result<Epochs> decode_epochs(std::string_view file);

/// A file with the highest epoch of each namespace that this machine has seen in a signed bundle. It allows a reader to
/// reject an older bundle of a namespace although the policy's minimum epoch was not raised. Several processes can use
/// one file, which is replaced atomically.
///
/// A corrupt file, or one that another user can write to, is reported as an event and treated as empty. A file that
/// cannot be written is reported as an event; the epochs are then not recorded.
///
/// Thread-safe.
class EpochMemory {
 public:
  EpochMemory(std::string path, EventEmitter emitter);

  /// Returns Code::Denied if a later epoch of this namespace was seen; the message states how to allow an older one.
  /// Records an epoch that is later than all previous ones and `proven` by a valid signature.
  Status admit(const std::string& name_space, std::uint64_t epoch, bool proven);

  /// Maximum number of namespaces. Further ones are not recorded.
  static constexpr std::size_t kMaxNamespaces = 4096;

 private:
  Epochs read() KILN_REQUIRES(mutex_);
  void remember(const std::string& name_space, std::uint64_t epoch) KILN_REQUIRES(mutex_);
  void emit(const std::string& message) KILN_REQUIRES(mutex_);

  const std::string path_;
  const EventEmitter emitter_;
  Mutex mutex_;
  bool was_reported_ KILN_GUARDED_BY(mutex_) = false;
};

}  // namespace kiln
