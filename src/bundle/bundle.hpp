// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/result.hpp>

#include "base/progress_callback.hpp"
#include "bundle/blob.hpp"
#include "bundle/bundle_description.hpp"
#include "bundle/bundle_format.hpp"
#include "bundle/bundle_image.hpp"
#include "bundle/bundle_source.hpp"
#include "bundle/bundle_writer.hpp"
#include "cache/store.hpp"
#include "trust/policy.hpp"

namespace kiln {

/// A read-only store of prebuilt artifacts that can also be queried by unit and device. Opening it reads and verifies
/// the header. Each index page is read and verified on first use, each blob on every use. Verification works on a copy
/// in memory, and that copy is used. Data that fails verification is an error and is never returned. Thread-safe.
class Bundle final : public Store {
 public:
  /// Opens a bundle. `policy` is null for a bundle that is part of the program and as trusted as the program. Returns
  /// `Code::Denied` if the policy does not trust it, before anything but the header is read, and `Code::Corrupt` if it
  /// is corrupt.
  static Result<std::unique_ptr<Bundle>> open(std::unique_ptr<BundleSource> source, const TrustPolicy* policy,
                                              const BundleLimits& limits = kTrustedLimits);
  /// Opens a bundle for commands that show its contents even if it is not trusted. `trusted()` reports whether it is.
  /// At most `kUntrustedLimits` of an untrusted bundle is decompressed or parsed.
  static Result<std::unique_ptr<Bundle>> look(std::unique_ptr<BundleSource> source, const TrustPolicy& policy);
  ~Bundle() override;

  Result<std::optional<Hit>> get(const ArtifactKey& key, const RequestContext& context) override;
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit,
                                                     const RequestContext& context) override;
  Status put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& context) override;
  Status add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                            const RequestContext& context) override;
  bool is_writable() override { return false; }
  std::string describe() const override;  ///< "bundle app.kiln"

  /// An artifact that was found by its unit, with its keys.
  struct Match {
    Artifact artifact;  ///< `target` is the one that it was built for; `dependency_set` is not set
    ArtifactKey key;
    RequestKey request;
  };
  /// Returns the artifact that serves a target best, or nothing. `rejected`, which a driver rejected, counts as a miss.
  Result<std::optional<Match>> find(const UnitKey& unit, const Target& wanted, const Bytes* rejected = nullptr);
  /// Returns the targets for which it has a unit; empty if it does not contain the unit.
  Result<std::vector<Target>> targets(const UnitKey& unit);

  const BundleHeader& header() const { return header_; }
  /// Returns `Code::Denied` if the policy that it was opened with does not trust it.
  const Status& trusted() const { return trusted_; }
  const BundleLimits& limits() const { return limits_; }
  /// Returns the SHA-256 of the index pages, which is the subject of a provenance statement.
  Result<Digest> index_digest();
  /// Returns the human-readable description.
  Result<BundleDescription> description();
  /// Returns all members, verified, as given to the writer (without costs and logs). `merge` writes them again. With
  /// `wanted`, only members for the targets that it accepts; the blobs of the others are not read.
  Result<std::vector<BundleMember>> members(const ProgressCallback& advance = {},
                                            const std::function<bool(const Target&)>& wanted = {});
  /// Returns the current bytes of the bundle. The header is the one that was verified at open; the caller must verify
  /// everything else.
  Result<BundleImage> image();
  /// Reads and verifies everything: every page and blob, that blobs neither overlap nor leave gaps, that rows and
  /// description agree, and that there is nothing else.
  Status verify(const ProgressCallback& advance = {});

 private:
  struct Page;
  Bundle(std::unique_ptr<BundleSource> source, BundleHeader header, const BundleLimits& limits, Status trusted);
  Error exceeds(std::string what) const;
  Result<const std::uint8_t*> page(std::uint32_t number);
  Result<std::vector<BundleRow>> rows(const Digest& digest, BundleRow::Role role);
  Result<std::vector<BundleRow>> all_rows();
  Result<Bytes> blob(const BlobLocation& location);
  Result<ArtifactBlob> artifact(const BlobLocation& location);
  Result<DependencySet> dependency_set(const BlobLocation& location);
  /// A member and the locations of its blobs.
  struct LocatedMember {
    BundleMember member;
    BlobLocation artifact;
    std::optional<BlobLocation> dependency_set;
  };
  Result<LocatedMember> member(BundleDescription::Artifact about);
  Status check_blobs(const std::vector<BundleRow>& rows);
  Status check_provenance(const std::string& statement);

  const std::unique_ptr<BundleSource> source_;
  const BundleHeader header_;
  const std::vector<BundleGroup> groups_;
  const BundleLimits limits_;
  const Status trusted_;
  std::atomic<std::uint64_t> unpacked_{0};
  BlobUnpacker unpacker_;
  std::vector<std::atomic<const Page*>> pages_;  // each is created once, immutable, owned
};

}  // namespace kiln
