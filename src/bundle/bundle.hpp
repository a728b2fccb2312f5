#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/result.hpp>

#include "base/advance.hpp"
#include "base/mutex.hpp"
#include "bundle/blob.hpp"
#include "bundle/bundle_description.hpp"
#include "bundle/bundle_format.hpp"
#include "bundle/bundle_image.hpp"
#include "bundle/bundle_source.hpp"
#include "bundle/bundle_writer.hpp"
#include "store/store.hpp"
#include "trust/policy.hpp"

namespace kiln {

/// Artifacts that somebody built before: a store that is only read, and that can also be asked by unit and device. Any
/// thread. Opening it reads and checks the header; each page of the index is checked when it is first needed, each blob
/// whenever it is. What fails its check is an error and never served.
class Bundle final : public Store {
 public:
  /// `policy` is null for a bundle that is as trusted as the program is, because it is a part of it. Code::Refused
  /// where the policy does not believe it, before anything but the header was looked at; Code::Corrupt where it is
  /// damaged.
  static Result<std::unique_ptr<Bundle>> open(std::unique_ptr<BundleSource> source, const TrustPolicy* policy);
  ~Bundle() override;

  Result<std::optional<Hit>> get(const Key& key) override;
  Result<std::vector<Closure>> closures(const RequestKey& request, std::size_t limit = kMostClosures) override;
  Status put(const Key& key, const Artifact& artifact) override;
  Status add_closure(const RequestKey& request, const Closure& closure) override;
  bool writable() override { return false; }
  std::string describe() const override;  ///< "bundle app.kiln"

  /// An artifact that was found by its unit, and under which names it was kept.
  struct Pinned {
    Artifact artifact;  ///< its target is what it was made for; its closure is not set
    Key key;
    RequestKey request;
  };
  /// What serves a target best; nothing where nothing does. Of `refused`, which a driver did not take, it is taken not
  /// to have it.
  Result<std::optional<Pinned>> find(const UnitKey& unit, const Target& wanted, const Bytes* refused = nullptr);
  /// For which GPUs it has a unit; empty where it does not know the unit at all.
  Result<std::vector<Target>> targets(const UnitKey& unit);

  const BundleHeader& header() const { return header_; }
  /// What it says about itself, for people.
  Result<BundleDescription> description();
  /// Everything in it, checked, as it was given to the writer (without costs and logs): what `merge` writes again.
  Result<std::vector<BundleMember>> members(const Advance& advance = {});
  /// Its bytes as they are.
  Result<BundleImage> image();
  /// Reads and checks everything: every page, every blob, that blobs neither overlap nor leave anything between them,
  /// that rows and description agree, and that nothing is there which does not belong.
  Status verify(const Advance& advance = {});

 private:
  struct Page;
  Bundle(std::unique_ptr<BundleSource> source, Bytes head, BundleHeader header);
  Result<const std::uint8_t*> page(std::uint32_t number);
  Result<std::vector<BundleRow>> rows(const Digest& digest, BundleRow::Role role);
  Result<std::vector<BundleRow>> all_rows();
  Result<Bytes> group(std::uint32_t number);
  Result<Bytes> blob(const BlobPlace& place);
  Result<ArtifactBlob> artifact(const BlobPlace& place);
  Result<Closure> closure(const BlobPlace& place);
  /// A member and where its blobs lie.
  struct Placed {
    BundleMember member;
    BlobPlace artifact;
    std::optional<BlobPlace> closure;
  };
  Result<Placed> member(BundleDescription::Artifact about);
  Status check_blobs(const std::vector<BundleRow>& rows);

  const std::unique_ptr<BundleSource> source_;
  const Bytes head_;  // as the source gave it
  const BundleHeader header_;
  BlobUnpacker unpacker_;
  std::vector<std::atomic<const Page*>> pages_;  // each made once, never changed, owned
  Mutex mutex_;
  std::vector<std::optional<Bytes>> groups_ KILN_GUARDED_BY(mutex_);  // as the source gave them
};

}  // namespace kiln
