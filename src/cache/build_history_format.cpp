// SPDX-License-Identifier: Apache-2.0
#include "cache/build_history_format.hpp"

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNHIS1";
constexpr std::uint32_t kVersion = 1;
// The digests, fixed fields and length prefixes of an empty build.
constexpr std::size_t kMinBuild = 4 * 32 + 4 * 4 + 4 + 4 + 1 + 3 * 4 + 32 + 4 + 8 + 8;

void write_texts(BinaryWriter& out, const std::vector<std::string>& texts) {
  out.u32(static_cast<std::uint32_t>(texts.size()));
  for (const std::string& text : texts) out.text(text);
}

std::vector<std::string> read_texts(BinaryReader& in) {
  std::vector<std::string> texts(in.count(4));
  for (std::string& text : texts) text = in.text();
  return texts;
}

void write_build(BinaryWriter& out, const Build& build) {
  out.digest(build.request.digest).digest(build.key.digest).digest(build.source).digest(build.preamble);
  write_texts(out, build.options);
  write_texts(out, build.entries);
  out.u32(static_cast<std::uint32_t>(build.headers.size()));
  for (const auto& [name, digest] : build.headers) out.text(name).digest(digest);
  write_texts(out, build.include_roots);
  out.text(build.working_directory);
  out.text(build.target.architecture).u8(static_cast<std::uint8_t>(build.target.form));
  out.text(build.compiler.name).text(build.compiler.version).text(build.compiler.path).digest(build.compiler.digest);
  out.u32(static_cast<std::uint32_t>(build.compiler.environment.size()));
  for (const auto& [name, value] : build.compiler.environment) out.text(name).text(value);
  out.u64(static_cast<std::uint64_t>(build.built_at.count())).f64(build.cost_ms);
}

Build read_build(BinaryReader& in) {
  Build build;
  build.request.digest = in.digest();
  build.key.digest = in.digest();
  build.source = in.digest();
  build.preamble = in.digest();
  build.options = read_texts(in);
  build.entries = read_texts(in);
  build.headers.resize(in.count(4 + 32));
  for (auto& [name, digest] : build.headers) {
    name = in.text();
    digest = in.digest();
  }
  build.include_roots = read_texts(in);
  build.working_directory = in.text();
  build.target.architecture = in.text();
  const std::uint8_t form = in.u8();
  if (form < 1 || form > 4) in.fail();
  build.target.form = static_cast<Form>(form);
  build.compiler.name = in.text();
  build.compiler.version = in.text();
  build.compiler.path = in.text();
  build.compiler.digest = in.digest();
  build.compiler.environment.resize(in.count(8));
  for (auto& [name, value] : build.compiler.environment) {
    name = in.text();
    value = in.text();
  }
  build.built_at = std::chrono::nanoseconds(static_cast<std::int64_t>(in.u64()));
  build.cost_ms = in.f64();
  return build;
}

}  // namespace

Build Build::of(const Recipe& recipe, const ArtifactKey& key, double cost_ms, std::chrono::nanoseconds now) {
  const Unit& unit = recipe.unit;
  Build build;
  build.request = recipe.request_key();
  build.key = key;
  build.source = sha256(unit.source());
  build.preamble = sha256(unit.preamble());
  build.options = unit.options();
  build.entries = unit.entries();
  for (const Header& header : unit.headers()) build.headers.emplace_back(header.name, sha256(header.content));
  for (const IncludeRoot& root : unit.include_roots()) build.include_roots.push_back(root.path);
  build.working_directory = recipe.working_directory;
  build.target = recipe.target;
  build.compiler = recipe.compiler;
  build.built_at = now;
  build.cost_ms = cost_ms;
  return build;
}

std::string encode(const UnitHistory& history) {
  BinaryWriter body;
  body.text(history.kind).text(history.name);
  const std::size_t count = std::min(history.builds.size(), UnitHistory::kMaxBuilds);
  body.u32(static_cast<std::uint32_t>(count));
  for (std::size_t i = 0; i < count; ++i) write_build(body, history.builds[i]);
  BinaryWriter out;
  out.raw(kMagic.data(), kMagic.size()).u32(kVersion).u64(xxh3(as_bytes(body.bytes())));
  out.raw(body.bytes().data(), body.bytes().size());
  return std::move(out).bytes();
}

Result<UnitHistory> decode_history(std::string_view bytes) {
  BinaryReader in(bytes);
  if (in.raw(kMagic.size()) != kMagic) return make_error(Code::Corrupt, "corrupt history file: wrong magic");
  const std::uint32_t version = in.u32();
  if (version != kVersion)
    return make_error(Code::Corrupt, "corrupt history file: unsupported format version " + std::to_string(version));
  const std::uint64_t checksum = in.u64();
  if (!in.ok() || xxh3(as_bytes(bytes.substr(bytes.size() - in.left()))) != checksum) {
    return make_error(Code::Corrupt, "corrupt history file: checksum mismatch");
  }
  UnitHistory history;
  history.kind = in.text();
  history.name = in.text();
  const std::uint32_t count = in.count(kMinBuild);
  if (count > UnitHistory::kMaxBuilds) in.fail();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) history.builds.push_back(read_build(in));
  if (!in.at_end()) return make_error(Code::Corrupt, "corrupt history file: truncated or has trailing bytes");
  return history;
}

}  // namespace kiln
