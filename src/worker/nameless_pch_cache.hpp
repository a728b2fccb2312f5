// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.hpp"
#include "worker/pch_cache.hpp"

namespace kiln {

/// Creates a file that has no name in a directory. The kernel removes it with its last descriptor, also if the process
/// is killed. Returns an invalid descriptor if that fails; errno has the reason.
Fd make_nameless_file(const std::string& directory);

/// The precompiled headers of one process, in files without a name: none is left when the process ends, and none gets
/// into the layer of a container image. Workers get the files from the host (`WorkerFiles`). A child after fork shares
/// the finished files of its parent. Check results are stored in a directory if there is one, because they are small
/// and contain no text of headers.
/// Thread-safe.
class NamelessPchCache final : public PchCache {
 public:
  explicit NamelessPchCache(Options options);

  std::optional<Pch> find(const Digest& key, std::string* corruption = nullptr) override;
  /// Returns false, because a precompiled header is of no use to other processes.
  bool requested_before(const Digest& key) override;
  std::unique_ptr<Writer> try_begin_write(const Digest& key) override;
  std::optional<PchVerdict> verdict(const Digest& key) override;
  Status publish_verdict(const Digest& key, const PchVerdict& verdict) override;
  bool remove(const Digest& key) override;
  Usage usage() const override;
  void clear() override;

 private:
  class NamelessWriter;
  struct Entry {
    Pch pch;
    std::uint64_t used = 0;  // number of the last use
  };
  Status keep(const Digest& key, Pch pch);

  PchCache verdict_files_;
  mutable Mutex mutex_;
  std::map<Digest, Entry> entries_ KILN_GUARDED_BY(mutex_);
  std::map<Digest, pid_t> writers_ KILN_GUARDED_BY(mutex_);        // the processes of the writers
  std::map<Digest, PchVerdict> verdicts_ KILN_GUARDED_BY(mutex_);  // of this process
  std::uint64_t uses_ KILN_GUARDED_BY(mutex_) = 0;
};

/// Returns an error if a precompiled header alone exceeds the limit for all.
Status check_fits(const Pch& pch, const PchCache::Options& options);

}  // namespace kiln
