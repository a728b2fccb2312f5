// SPDX-License-Identifier: Apache-2.0
#include <kiln/unit.hpp>

#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/codec.hpp"
#include "base/hash.hpp"
#include "core/link_parts.hpp"
#include "core/unit_access.hpp"

namespace kiln {

// A text that many units share. Its digest is computed at most once for all of them.
struct SharedPreamble {
  std::string text;
  mutable std::once_flag once;
  mutable Digest digest;

  explicit SharedPreamble(std::string value) : text(std::move(value)) {}
  const Digest& hash() const {
    std::call_once(once, [this] { digest = sha256(text); });
    return digest;
  }
};

struct Unit::State {
  std::string kind;
  std::string name;
  std::shared_ptr<const SharedPreamble> preamble;
  std::shared_ptr<const SharedPreamble> source;
  std::vector<std::string> options;
  std::vector<IncludeRoot> include_roots;
  std::vector<Header> headers;
  std::vector<std::string> entries;
  std::vector<std::string> served_by;

  mutable std::once_flag key_once;
  mutable UnitKey key;
  mutable std::atomic<bool> key_known{false};
  mutable std::once_flag identity_once;
  mutable Digest identity;
  mutable std::atomic<bool> identity_known{false};
  mutable std::atomic<std::uint64_t> fingerprint{0};  // 0: not computed yet

  State() = default;
  State(const State& other)
      : kind(other.kind), name(other.name), preamble(other.preamble), source(other.source), options(other.options),
        include_roots(other.include_roots), headers(other.headers), entries(other.entries), served_by(other.served_by) {
  }
  State& operator=(const State&) = delete;

  UnitKey compute_key() const;
  Digest compute_identity(const UnitKey& unit_key) const;
  std::uint64_t compute_fingerprint() const;
};

namespace {

const std::string kNothing;
constexpr std::size_t kSample = 256;

std::uint64_t mixed(std::uint64_t sum, std::uint64_t value) { return (sum ^ value) * 0x9e3779b97f4a7c15ULL + 1; }
std::uint64_t mixed(std::uint64_t sum, std::string_view text) { return mixed(sum, xxh3(as_bytes(text))); }

}  // namespace

UnitKey Unit::State::compute_key() const {
  BinaryWriter out;
  // The name of an algorithm does not affect its code: modules that use different names share the artifact.
  out.text("kiln unit 1").text(kind).text(kind == "cccl" ? kNothing : name);
  out.u8(preamble != nullptr ? 1 : 0);
  if (preamble != nullptr) out.digest(preamble->hash());
  out.digest(source->hash());
  out.u32(static_cast<std::uint32_t>(options.size()));
  for (const std::string& option : options) out.text(option);
  // Root paths are not part of the unit; the dependency set records which root provided a file.
  out.u32(static_cast<std::uint32_t>(include_roots.size()));
  for (const IncludeRoot& root : include_roots) out.u8(root.sentinel.empty() ? 0 : 1);
  out.u32(static_cast<std::uint32_t>(headers.size()));
  for (const Header& header : headers) out.text(header.name).digest(sha256(header.content));
  out.u32(static_cast<std::uint32_t>(entries.size()));
  for (const std::string& entry : entries) out.text(entry);
  return {sha256(out.bytes())};
}

Digest Unit::State::compute_identity(const UnitKey& unit_key) const {
  if (include_roots.empty() && served_by.empty()) return unit_key.digest;
  BinaryWriter out;
  out.text("kiln unit in place 1").digest(unit_key.digest);
  for (const IncludeRoot& root : include_roots) out.text(root.path).text(root.sentinel);
  // The key includes the number of include roots, so that none of these can be mistaken for a root.
  for (const std::string& name_space : served_by) out.text(name_space);
  return sha256(out.bytes());
}

std::uint64_t Unit::State::compute_fingerprint() const {
  std::uint64_t sum = mixed(0, kind);
  // Equal CCCL units can have different names.
  if (kind != "cccl") sum = mixed(sum, name);
  const std::string_view text = source->text;
  sum = mixed(sum, text.size());
  sum = mixed(sum, text.substr(0, kSample));
  if (text.size() > kSample) sum = mixed(sum, text.substr(text.size() - kSample));
  if (text.size() > 4 * kSample) sum = mixed(sum, text.substr(text.size() / 2, kSample));
  sum = mixed(sum, preamble != nullptr ? preamble->text.size() : 0);
  sum = mixed(sum, options.size());
  for (const std::string& entry : entries) sum = mixed(sum, entry);
  return sum;
}

Unit::Unit(std::shared_ptr<const State> state) : state_(std::move(state)) {}

Unit Unit::cuda(std::string name, std::string source) { return of_kind("cuda", std::move(name), std::move(source)); }
Unit Unit::opencl(std::string name, std::string source) {
  return of_kind("opencl", std::move(name), std::move(source));
}
Unit Unit::link(std::string name, const std::vector<LinkPart>& parts) {
  Unit link = of_kind("link", std::move(name), encode_link_parts(parts));
  for (const LinkPart& part : parts) {
    if (part.as_unit() == nullptr) continue;
    for (const IncludeRoot& root : part.as_unit()->include_roots())
      link = link.with_include_root(root.path, root.sentinel);
  }
  return link;
}
Unit Unit::command(std::string name, std::string source, const std::vector<std::string>& arguments) {
  return of_kind("command", std::move(name), std::move(source)).with_options(arguments);
}
Unit Unit::of_kind(std::string kind, std::string name, std::string canonical) {
  auto state = std::make_shared<State>();
  state->kind = std::move(kind);
  state->name = std::move(name);
  state->source = std::make_shared<const SharedPreamble>(std::move(canonical));
  return Unit(std::move(state));
}

Unit Unit::with_entry(std::string name) const {
  auto state = std::make_shared<State>(*state_);
  state->entries.push_back(std::move(name));
  return Unit(std::move(state));
}
Unit Unit::with_option(std::string text) const {
  auto state = std::make_shared<State>(*state_);
  state->options.push_back(std::move(text));
  return Unit(std::move(state));
}
Unit Unit::with_options(const std::vector<std::string>& texts) const {
  auto state = std::make_shared<State>(*state_);
  state->options.insert(state->options.end(), texts.begin(), texts.end());
  return Unit(std::move(state));
}
Unit Unit::with_include_root(std::string path, std::string sentinel) const {
  auto state = std::make_shared<State>(*state_);
  state->include_roots.push_back({std::move(path), std::move(sentinel)});
  return Unit(std::move(state));
}
Unit Unit::with_header(std::string name, std::string content) const {
  auto state = std::make_shared<State>(*state_);
  state->headers.push_back({std::move(name), std::move(content)});
  return Unit(std::move(state));
}
Unit Unit::with_preamble(std::string text) const {
  auto state = std::make_shared<State>(*state_);
  state->preamble = std::make_shared<const SharedPreamble>(std::move(text));
  return Unit(std::move(state));
}
Unit Unit::instance(std::string entry, std::string source) const {
  auto state = std::make_shared<State>(*state_);
  state->source = std::make_shared<const SharedPreamble>(std::move(source));
  state->entries.clear();
  state->entries.push_back(std::move(entry));
  return Unit(std::move(state));
}
Unit Unit::with_served_by(std::vector<std::string> namespaces) const {
  auto state = std::make_shared<State>(*state_);
  state->served_by = std::move(namespaces);
  return Unit(std::move(state));
}

std::vector<std::string> nvcc_template() {
  return {"nvcc", "-{form}", "-arch={arch}", "-MD", "-MF", "{depfile}", "{includes}", "-o", "{output}", "{source}"};
}

const std::string& Unit::kind() const noexcept { return state_->kind; }
const std::string& Unit::name() const noexcept { return state_->name; }
const std::string& Unit::source() const noexcept { return state_->source->text; }
const std::string& Unit::preamble() const noexcept { return state_->preamble ? state_->preamble->text : kNothing; }
const std::vector<std::string>& Unit::options() const noexcept { return state_->options; }
const std::vector<IncludeRoot>& Unit::include_roots() const noexcept { return state_->include_roots; }
const std::vector<Header>& Unit::headers() const noexcept { return state_->headers; }
const std::vector<std::string>& Unit::entries() const noexcept { return state_->entries; }
const std::vector<std::string>& Unit::served_by() const noexcept { return state_->served_by; }

std::string Unit::label() const {
  const bool of_a_family = state_->preamble != nullptr && entries().size() == 1;
  return of_a_family ? name() + ":" + entries().front() : name();
}

std::string Unit::full_source() const { return preamble() + source(); }

UnitKey Unit::key() const {
  if (!state_->key_known.load(std::memory_order_acquire)) {
    // Outside the `Once`, through which no exception may pass (base/once.hpp); computing it in two threads only costs
    // time.
    const UnitKey computed = state_->compute_key();
    std::call_once(state_->key_once, [&] {
      state_->key = computed;
      state_->key_known.store(true, std::memory_order_release);
    });
  }
  return state_->key;
}

bool operator==(const Unit& a, const Unit& b) {
  return a.state_ == b.state_ || UnitAccess::identity(a) == UnitAccess::identity(b);
}

const Digest& UnitAccess::identity(const Unit& unit) {
  if (const Digest* known = identity_if_computed(unit)) return *known;
  const Unit::State& state = *unit.state_;
  const Digest computed = state.compute_identity(unit.key());
  std::call_once(state.identity_once, [&] {
    state.identity = computed;
    state.identity_known.store(true, std::memory_order_release);
  });
  return state.identity;
}

const Digest* UnitAccess::identity_if_computed(const Unit& unit) noexcept {
  return unit.state_->identity_known.load(std::memory_order_acquire) ? &unit.state_->identity : nullptr;
}

const void* UnitAccess::address(const Unit& unit) noexcept { return unit.state_.get(); }

std::uint64_t UnitAccess::fingerprint(const Unit& unit) {
  // Computing it in two threads only costs time.
  std::uint64_t sum = unit.state_->fingerprint.load(std::memory_order_relaxed);
  if (sum == 0) unit.state_->fingerprint.store(sum = unit.state_->compute_fingerprint(), std::memory_order_relaxed);
  return sum;
}

}  // namespace kiln
