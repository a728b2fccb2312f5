#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "observe/observer.hpp"
#include "remote/depot.hpp"
#include "remote/judgement.hpp"
#include "store/store.hpp"
#include "trust/policy.hpp"
#include "trust/signer.hpp"

namespace kiln {

/// A store that other hosts share, on a depot: `ac/<key>` has an ActionResult with a signed statement, `cas/<digest>`
/// the entry, `ac/<digest of the request>` the closures. docs/remote-format.md has the grammar. Any thread.
///
/// Nothing is believed that the policy does not admit: who says so, for which key, which content, is checked before the
/// content is fetched, and its digest before it is parsed. Closures are hints and need no signature, but may only name
/// what lies below an include root or the working folder; others are neither sent nor taken. Without a signer this host
/// reads only.
///
/// What is rejected is one event (RemoteRefused), which says why, and Code::Corrupt, by which a GuardedStore knows that
/// the server answered something that it should not have: there it is absent. A content that is gone is an event and
/// absent here already: servers may forget. Every other error is the depot's: it could not be asked.
class RemoteStore final : public Store {
 public:
  struct Parts {
    std::shared_ptr<Depot> depot;
    std::shared_ptr<const TrustPolicy> policy;
    std::shared_ptr<const Signer> signer;  ///< null: a reader
    Observer observer;
    const Clock* clock = &system_clock();
    /// Of one lookup or one put with all its bodies, where no Allowance says less.
    std::chrono::nanoseconds read_limit = std::chrono::seconds(10);
    std::chrono::nanoseconds write_limit = std::chrono::seconds(30);
  };
  explicit RemoteStore(Parts parts) : parts_(std::move(parts)) {}

  Result<std::optional<Hit>> get(const Key& key) override;
  /// The content first, then the statement. A live signer leaves what a CI signer has stated: fewer would believe him.
  Status put(const Key& key, const Artifact& artifact) override;
  Result<std::vector<Closure>> closures(const RequestKey& request, std::size_t limit = kMostClosures) override;
  Status add_closure(const RequestKey& request, const Closure& closure) override;
  bool writable() override { return parts_.signer != nullptr; }
  std::string describe() const override;

  /// Withdraws an entry: whoever asks from now on does not find it.
  Status remove(const Key& key);

  /// Of the body of closures.
  static constexpr std::uint64_t kMostHintBytes = std::uint64_t{4} << 20;
  /// Of the body of an entry's statement.
  static constexpr std::uint64_t kMostActionBytes = std::uint64_t{64} << 10;

 private:
  struct Found;
  Result<Found> find(const Key& key, const Deadline& deadline);
  /// Tells it, and says it to whoever asked.
  Error reject(const std::string& key, const Rejection& rejection) const;

  const Parts parts_;
};

}  // namespace kiln
