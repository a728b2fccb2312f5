#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "bundle/bundle.hpp"
#include "bundle/bundle_writer.hpp"
#include "core/recipe.hpp"
#include "support/artifacts.hpp"

namespace kiln::test {

inline UnitKey unit_key_of(const std::string& unit) { return {sha256("test unit " + unit)}; }

/// An artifact of a unit for a target, whose bytes can be told from its key; text that packs well where `packs` says
/// so.
struct MemberOptions {
  std::size_t size = 500;
  std::optional<Closure> closure = std::nullopt;
  bool packs = false;
};
inline BundleMember member_of(const std::string& unit, const Target& target, const MemberOptions& options = {}) {
  BundleMember member;
  member.kind = target.form == Form::OpenClBinary ? "opencl" : "cuda";
  member.unit = unit_key_of(unit);
  member.request = {sha256("test request " + unit + " " + target.name())};
  member.key = key_of(member.request, options.closure.value_or(Closure()));
  member.artifact = artifact_of(member.key, options.size);
  if (options.packs) {
    std::string text;
    while (text.size() < options.size) text += "mov.u32 %r1, %tid.x; // " + member.key.hex().substr(0, 8) + "\n";
    text.resize(options.size);
    member.artifact.bytes = Bytes::of(std::move(text));
  }
  member.artifact.target = target;
  member.artifact.about.unit = unit;
  if (options.closure) member.artifact.closure = std::make_shared<const Closure>(*options.closure);
  member.compiler = "nvrtc";
  member.version = "13.0.88";
  member.compiler_digest = sha256("a compiler");
  return member;
}

/// What a bundle keeps of it.
inline Artifact kept(Artifact artifact) {
  artifact.about.cost_ms = 0;
  artifact.about.log.clear();
  return artifact;
}

inline BundleImage image_of(const std::vector<BundleMember>& members, const SecretKey* key = nullptr,
                            BundleWriter::Options options = {}) {
  BundleWriter writer(std::move(options));
  for (const BundleMember& member : members) writer.add(member).value();
  return writer.finish(key).value();
}

inline Result<std::unique_ptr<Bundle>> open_bytes(std::string bytes, const TrustPolicy* policy = nullptr) {
  return Bundle::open(bundle_in_memory(Bytes::of(std::move(bytes)), "test.kiln"), policy);
}

}  // namespace kiln::test
