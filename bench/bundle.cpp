// SPDX-License-Identifier: Apache-2.0
// The cost of a bundle: opening one in a new process, independent of its size, and getting an artifact from it.
#include <fcntl.h>
#include <zstd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kiln/session.hpp>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/hash.hpp"
#include "bench/benchmarks.hpp"
#include "bench/support/child_process.hpp"
#include "bench/support/scratch.hpp"
#include "bench/support/units.hpp"
#include "bundle/blob.hpp"
#include "bundle/bundle.hpp"

namespace kiln::bench {
namespace {

constexpr unsigned kCapabilities[] = {80, 86, 89, 90, 100, 120};

BundleMember member_of(const std::string& unit, const Target& target, const Artifact& like) {
  BundleMember member;
  member.kind = "cuda";
  member.unit = {sha256("bench unit " + unit)};
  member.request = {sha256("bench request " + unit + " " + target.name())};
  member.key = {sha256("bench key " + unit + " " + target.name())};
  member.artifact = like;
  member.artifact.dependency_set = nullptr;
  member.artifact.target = target;
  member.artifact.metadata.unit = unit;
  member.compiler = "nvrtc";
  member.version = "13.0.88";
  return member;
}

// Writes a signed bundle with `artifacts` artifacts of units for six architectures each. Their content does not affect
// opening; it is small filler, because packing 2,000 real artifacts takes a minute.
Status write_bundle(const std::string& path, std::size_t artifacts, const SecretKey& key) {
  Artifact little;
  little.entries = {{"first", "first"}, {"second", "second"}};
  BundleWriter writer({.name_space = "bench", .epoch = 1});
  for (std::size_t i = 0; i < artifacts; ++i) {
    const std::string unit = "unit_" + std::to_string(i / std::size(kCapabilities)) + ".cu";
    little.bytes = Bytes::of(std::string(1024, static_cast<char>('a' + i % 26)) + std::to_string(i));
    const auto added = writer.add(member_of(unit, Target::sm(kCapabilities[i % std::size(kCapabilities)]), little));
    if (!added) return added.error();
  }
  const auto image = writer.finish(&key);
  if (!image) return image.error();
  const std::string whole = image->to_file();
  std::fprintf(stderr, "kiln-bench: a bundle of %zu artifacts: head %zu bytes, all %zu\n", writer.size(),
               image->head.size(), whole.size());
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  return write_all(file.get(), whole, path);
}

// Compiles a unit with NVRTC.
Result<Artifact> compiled(const Unit& unit, const std::string& cache) {
  auto session = Session::open({.settings = {{"cache.dir", cache}}, .locked = {"cache.dir"}});
  if (!session) return std::move(session).error();
  return session->artifact(unit, Target{kArchitecture, Form::Cubin});
}

// The minimum work to get the original bytes from the stored bytes: unpacking without checks.
class BareUnpacking {
 public:
  explicit BareUnpacking(PackedBlob blob) : blob_(std::move(blob)) {}
  ~BareUnpacking() { ZSTD_freeDCtx(context_); }
  BareUnpacking(const BareUnpacking&) = delete;
  BareUnpacking& operator=(const BareUnpacking&) = delete;

  bool unpack() const {
    const std::unique_ptr<std::uint8_t[]> fresh(new std::uint8_t[blob_.raw]);
    return ZSTD_decompressDCtx(context_, fresh.get(), blob_.raw, blob_.stored.data(), blob_.stored.size()) == blob_.raw;
  }

 private:
  const PackedBlob blob_;
  ZSTD_DCtx* const context_ = ZSTD_createDCtx();
};

Status measure_get(const std::string& name, const Artifact& artifact, const Scratch& scratch, Outcomes& outcomes) {
  const BundleMember member = member_of(name + ".cu", Target::sm(80), artifact);
  BundleWriter writer({.name_space = "bench", .epoch = 1});
  if (auto added = writer.add(member); !added) return std::move(added).error();
  const auto image = writer.finish(nullptr);
  if (!image) return image.error();
  const std::string path = scratch / (name + ".kiln");
  {
    const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (Status written = write_all(file.get(), image->to_file(), path); !written) return written;
  }
  auto source = open_bundle_source(path);
  if (!source) return std::move(source).error();
  const auto bundle = Bundle::open(std::move(*source), nullptr);
  if (!bundle) return bundle.error();
  auto packed = BlobPacker().pack(encode_artifact_blob(member.key, member.request, member.artifact));
  if (!packed) return std::move(packed).error();
  std::fprintf(stderr, "kiln-bench: %s: %zu bytes, %zu stored\n", name.c_str(), artifact.bytes.size(),
               packed->stored.size());
  const BareUnpacking bare(std::move(*packed));

  constexpr std::size_t kCalls = 20;
  bool good = true;
  const auto answer = [&](double time) -> Result<double> {
    if (!good) return make_error(Code::Internal, name + " was unpacked incorrectly");
    return time;
  };
  const std::size_t size = artifact.bytes.size();
  const Plan::Side by_key = [&] {
    return answer(microseconds_each(kCalls, [&] {
      const auto hit = (*bundle)->get(member.key, {});
      good = good && hit && *hit && (*hit)->artifact.bytes.size() == size;
    }));
  };
  const Plan::Side by_unit = [&] {
    return answer(microseconds_each(kCalls, [&] {
      const auto found = (*bundle)->find(member.unit, Target::sm(86));
      good = good && found && *found && (*found)->artifact.bytes.size() == size;
    }));
  };
  for (const auto& [suffix, side] : {std::pair("", by_key), std::pair("_by_unit", by_unit)}) {
    Plan plan;
    plan.name = name + suffix;
    plan.limit = 1.5;
    plan.min_rounds = 200;
    plan.max_rounds = 5000;
    plan.ours = side;
    plan.theirs = [&] { return answer(microseconds_each(kCalls, [&] { good = bare.unpack() && good; })); };
    if (Status added = add(outcomes, compare(plan)); !added) return added;
  }
  return {};
}

}  // namespace

Result<Outcomes> bundle_open() {
  const Scratch scratch;
  const SecretKey key = SecretKey::generate();
  std::vector<Plan::Side> sides;
  for (const std::size_t artifacts : {2000, 20}) {
    const std::string path = scratch / (std::to_string(artifacts) + ".kiln");
    if (Status written = write_bundle(path, artifacts, key); !written) return std::move(written).error();
    sides.push_back(
        child_side({beside_this_program("kiln-bench-bundle"), path, key.public_key().text()}, &Times::from_main_us));
  }
  Plan plan;
  plan.warm_up = 10;
  plan.min_rounds = 200;
  plan.max_rounds = 3000;
  plan.ours = sides[0];
  Outcomes outcomes;
  for (const auto& [name, limit, theirs, budget] :
       {std::tuple("bundle_open_2000", 2.0, sides[1], Budget::Ratio),
        std::tuple("bundle_open_2000_time", 1.0, allowed(1000), Budget::Time)}) {
    plan.name = name;
    plan.limit = limit;
    plan.theirs = theirs;
    plan.budget = budget;
    if (Status added = add(outcomes, compare(plan)); !added) return std::move(added).error();
  }
  return outcomes;
}

Result<Outcomes> bundle_get() {
  const Scratch scratch;
  use_own_directories(scratch);
  const auto roots = toolkit_include_roots();
  if (!roots) return roots.error();
  Outcomes outcomes;
  for (const auto& [name, unit] :
       {std::pair("bundle_get_28k", small_unit()), std::pair("bundle_get_190k", large_unit(*roots))}) {
    const auto artifact = compiled(unit, scratch / "cache");
    if (!artifact) return artifact.error();
    Status measured = measure_get(name, *artifact, scratch, outcomes);
    if (!measured) return std::move(measured).error();
  }
  return outcomes;
}

}  // namespace kiln::bench
