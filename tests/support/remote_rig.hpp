#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "remote/depot.hpp"
#include "support/temporary_directory.hpp"
#include "trust/keys.hpp"
#include "trust/policy.hpp"
#include "trust/signed_statement.hpp"
#include "trust/signer.hpp"

namespace kiln::test {

/// Bodies in memory, counted as they are read. A `forge` may answer in its place. Any thread.
class MemoryDepot final : public Depot {
 public:
  using Forge = std::function<std::optional<Result<std::optional<Bytes>>>(Shelf, const Digest&)>;

  Result<std::optional<Bytes>> read(Shelf shelf, const Digest& name, std::uint64_t most, Time) override {
    const MutexLock lock(mutex_);
    ++reads_[shelf];
    if (forge_) {
      if (auto answer = forge_(shelf, name)) return std::move(*answer);
    }
    const auto found = bodies_.find({shelf, name});
    if (found == bodies_.end()) return std::optional<Bytes>();
    if (found->second.size() > most) return failure(Code::Corrupt, "the body is longer than it may be");
    return std::optional<Bytes>(Bytes::copy_of(found->second));
  }
  Status write(Shelf shelf, const Digest& name, std::initializer_list<std::string_view> parts, Time) override {
    const MutexLock lock(mutex_);
    std::string& body = bodies_[{shelf, name}];
    body.clear();
    for (const std::string_view part : parts) body += part;
    written_.emplace_back(shelf, name);
    return {};
  }
  Status remove(Shelf shelf, const Digest& name, Time) override {
    const MutexLock lock(mutex_);
    bodies_.erase({shelf, name});
    return {};
  }
  Result<std::vector<Listed>> list(Shelf shelf, Time) override {
    const MutexLock lock(mutex_);
    std::vector<Listed> all;
    for (const auto& [place, body] : bodies_) {
      if (place.first != shelf) continue;
      const auto since = modified_.find(place);
      all.push_back({place.second, body.size(), since == modified_.end() ? Time(0) : since->second});
    }
    return all;
  }
  Status probe(Time) override { return {}; }
  std::string describe() const override { return "memory"; }

  void forge(Forge forge) {
    const MutexLock lock(mutex_);
    forge_ = std::move(forge);
  }
  std::string body(Shelf shelf, const Digest& name) const {
    const MutexLock lock(mutex_);
    const auto found = bodies_.find({shelf, name});
    return found == bodies_.end() ? std::string() : found->second;
  }
  void set(Shelf shelf, const Digest& name, std::string body) {
    const MutexLock lock(mutex_);
    bodies_[{shelf, name}] = std::move(body);
  }
  /// As the depot's own clock had it.
  void set_modified(Shelf shelf, const Digest& name, Time modified) {
    const MutexLock lock(mutex_);
    modified_[{shelf, name}] = modified;
  }
  int reads(Shelf shelf) const {
    const MutexLock lock(mutex_);
    const auto found = reads_.find(shelf);
    return found == reads_.end() ? 0 : found->second;
  }
  std::vector<std::pair<Shelf, Digest>> written() const {
    const MutexLock lock(mutex_);
    return written_;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::pair<Shelf, Digest>, std::string> bodies_ KILN_GUARDED_BY(mutex_);
  std::map<std::pair<Shelf, Digest>, Time> modified_ KILN_GUARDED_BY(mutex_);
  std::map<Shelf, int> reads_ KILN_GUARDED_BY(mutex_);
  std::vector<std::pair<Shelf, Digest>> written_ KILN_GUARDED_BY(mutex_);
  Forge forge_ KILN_GUARDED_BY(mutex_);
};

/// The same key again: secret keys are not copied, except by whoever can read their files.
inline SecretKey twin_of(const SecretKey& key) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(key.write(folder.path("key")).ok());
  return SecretKey::read(folder.path("key")).value();
}

/// Keys, a policy and signers as a small fleet has them: a CI key for `acme`, an authority for what is below it, and a
/// host that the authority certified for the live namespace `acme/live`.
struct TrustRig {
  static constexpr std::uint64_t kEpoch = 7;
  static constexpr std::uint64_t kLiveDays = 3;

  SecretKey ci_key = SecretKey::generate();
  SecretKey authority = SecretKey::generate();
  SecretKey host_key = SecretKey::generate();
  std::uint64_t today = day_of(system_clock().wall());

  TrustPolicy policy() const {
    TrustPolicy policy;
    policy.trust(ci_key.public_key(), "acme");
    policy.trust(authority.public_key(), "acme/*");
    policy.require_epoch("acme", kEpoch);
    policy.accept_live("acme/live", kLiveDays);
    return policy;
  }
  Certificate certificate(std::uint64_t last_day, const std::string& name_space = "acme/live") const {
    return Certificate::make(authority, host_key.public_key(), name_space, last_day);
  }
  Certificate certificate() const { return certificate(today + 5); }

  std::shared_ptr<const Signer> ci_signer() const {
    return std::make_shared<const Signer>(Signer::ci(twin_of(ci_key), "acme", kEpoch).value());
  }
  std::shared_ptr<const Signer> live_signer() const {
    return std::make_shared<const Signer>(Signer::live(twin_of(host_key), certificate()).value());
  }
};

}  // namespace kiln::test
