#include "compile/precompiled_headers.hpp"

#include "base/clock.hpp"
#include "base/codec.hpp"
#include "base/hash.hpp"
#include "compile/closure_builder.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "compile/source_text.hpp"

namespace kiln {

PrecompiledHeaders::PrecompiledHeaders(FindShelf shelf, FileDigests& digests, Observer observer)
    : find_shelf_(std::move(shelf)), digests_(digests), observer_(std::move(observer)) {}

// Unlike a Key this names places: a precompiled header has the paths of its files in it, and never leaves the host.
std::optional<Digest> PrecompiledHeaders::headers_of(const Recipe& recipe) {
  std::call_once(found_, [this] {
    if (auto options = find_shelf_()) shelf_ = std::make_unique<PchShelf>(std::move(*options));
  });
  if (shelf_ == nullptr) return std::nullopt;
  const Unit& unit = recipe.unit;
  if (unit.kind() != "cuda" || has_debug_options(recipe)) return std::nullopt;
  const std::string source = unit.whole_source();
  const std::string_view start = leading_directives(source);
  if (start.empty()) return std::nullopt;
  Writer out;
  out.text("kiln pch 1").text(start).text(recipe.working_directory);
  out.text(recipe.target.architecture).u8(static_cast<std::uint8_t>(recipe.target.form));
  out.digest(recipe.compiler.digest).u32(static_cast<std::uint32_t>(recipe.compiler.environment.size()));
  for (const auto& [name, value] : recipe.compiler.environment) out.text(name).text(value);
  out.u32(static_cast<std::uint32_t>(unit.options().size()));
  for (const std::string& option : unit.options()) out.text(option);
  out.u32(static_cast<std::uint32_t>(unit.include_roots().size()));
  for (const IncludeRoot& root : unit.include_roots()) out.text(root.path).text(root.seal);
  for (const Header& header : unit.headers()) out.text(header.name).text(header.content);
  return sha256(out.bytes());
}

PrecompiledHeaders::Interest::Interest(PrecompiledHeaders& owner, const Digest& headers)
    : owner_(owner), headers_(headers) {
  const MutexLock lock(owner_.mutex_);
  ++owner_.sights_[headers_].interested;
}

PrecompiledHeaders::Interest::~Interest() {
  const MutexLock lock(owner_.mutex_);
  Sight& sight = owner_.sights_[headers_];
  --sight.interested;
  sight.seen = true;
}

void PrecompiledHeaders::tell(Event::Kind kind, const Recipe& recipe, std::string message, double ms) const {
  if (!observer_) return;
  Event event = event_of(kind, recipe.unit, recipe.target, recipe.flow);
  event.origin = "headers";
  event.message = std::move(message);
  event.ms = ms;
  observer_.tell(event);
}

// Making one costs a fifth of a compile and saves four fifths of the next: worth it from the second unit on.
bool PrecompiledHeaders::is_worth_making(const Digest& headers) {
  {
    const MutexLock lock(mutex_);
    if (unavailable_) return false;
    const Sight& sight = sights_[headers];
    if (sight.interested > 1 || sight.seen) return true;
  }
  return shelf_->asked_before(headers);
}

std::optional<PrecompiledHeaders::Plan> PrecompiledHeaders::use(const Recipe& recipe, const Digest& headers) {
  auto pch = shelf_->find(headers);
  if (!pch) return std::nullopt;
  // The stamps first: a file that changes after its content was found good does not have this stamp any more when the
  // unit's closure is built.
  const auto now = system_clock().wall().count();
  for (Observation& observation : pch->observations) {
    observation.asked_ns = now;
    if (observation.state == Observation::State::Missing) continue;
    const auto stamp = stamp_of(join_path(recipe.working_directory, observation.path).c_str());
    observation.stamp = stamp.value_or(FileStamp{});
  }
  if (const auto changed = check(pch->closure, recipe.places(), digests_)) {
    drop(recipe, headers, changed->text);
    return std::nullopt;
  }
  Plan plan;
  plan.headers = headers;
  plan.order = {PchOrder::Mode::Use, std::move(pch->path), pch->size, pch->checksum};
  plan.observations = std::move(pch->observations);
  return plan;
}

PrecompiledHeaders::Plan PrecompiledHeaders::plan(const Recipe& recipe, const Digest& headers) {
  Plan plan;
  plan.headers = headers;
  {
    const MutexLock lock(mutex_);
    if (unavailable_) return plan;
  }
  if (auto ready = use(recipe, headers)) return std::move(*ready);
  if (!is_worth_making(headers)) return plan;
  plan.making = shelf_->begin(headers);
  if (plan.making == nullptr) return plan;
  // Somebody may have made it between our look and our beginning.
  if (auto ready = use(recipe, headers)) return std::move(*ready);
  plan.order = {PchOrder::Mode::Create, plan.making->path(), 0, 0};
  return plan;
}

void PrecompiledHeaders::drop(const Recipe& recipe, const Digest& headers, const std::string& why) {
  shelf_->remove(headers);
  tell(Event::Kind::HeadersDropped, recipe, why);
}

void PrecompiledHeaders::keep(Plan& plan, const Recipe& recipe, const PchReport& report) {
  BuiltClosure built = build_closure(recipe, report.observations, false, {}, digests_);
  if (!built.not_cacheable.empty()) return;
  Pch pch{{}, report.size, report.checksum, std::move(built.closure), report.observations};
  // The compiler asks for a file of the program's own name, which is no one else's.
  const std::string program = tidy_path(recipe.unit.name());
  std::erase_if(pch.observations, [&](const Observation& observation) {
    return observation.state != Observation::State::Read && tidy_path(observation.path) == program;
  });
  const Status published = plan.making->publish(pch);
  if (published) {
    tell(Event::Kind::HeadersKept, recipe, std::to_string(report.size >> 20) + " MB of precompiled headers");
  } else {
    tell(Event::Kind::HeadersUnavailable, recipe, published.error().message);
  }
}

std::vector<Observation> PrecompiledHeaders::settle(Plan plan, const Recipe& recipe, const WorkerReply& reply) {
  switch (reply.pch.outcome) {
    case PchReport::Outcome::Used: return join(std::move(plan.observations), reply.observations);
    case PchReport::Outcome::Created: keep(plan, recipe, reply.pch); break;
    case PchReport::Outcome::Refused:
      if (plan.order.mode == PchOrder::Mode::Use) drop(recipe, plan.headers, "refused: " + reply.pch.reason);
      break;
    case PchReport::Outcome::Unavailable: {
      {
        const MutexLock lock(mutex_);
        if (std::exchange(unavailable_, true)) break;
      }
      tell(Event::Kind::HeadersUnavailable, recipe, reply.pch.reason);
      break;
    }
    case PchReport::Outcome::None: break;
  }
  return reply.observations;
}

void PrecompiledHeaders::suspect(const Plan& plan, const Recipe& recipe) {
  if (plan.order.mode == PchOrder::Mode::Use) drop(recipe, plan.headers, "a worker died that used it");
}

}  // namespace kiln
