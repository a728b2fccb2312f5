#include "compile/precompiled_headers.hpp"

#include <algorithm>
#include <cctype>

#include "base/clock.hpp"
#include "base/codec.hpp"
#include "base/guarded.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "compile/cccl_headers.hpp"
#include "compile/closure_builder.hpp"
#include "compile/source_text.hpp"

namespace kiln {
namespace {

// Making one in vain costs a fifth of a compile and a hundred megabytes written. The first time a file may have been
// edited meanwhile.
constexpr unsigned kMostVain = 2;

constexpr std::size_t kCompanyWorthIt = 2;

// Whoever finds that somebody has been making what he needs for so long waits for it, since what is left of that is
// less than parsing the headers himself; who finds it begun just now does not. (CUB: making 1.65 s, a full compile 1.35
// s, one with precompiled headers 0.3 s.)
constexpr std::chrono::milliseconds kWorthWaiting{500};
constexpr std::chrono::seconds kLongestWait{10};
constexpr std::chrono::milliseconds kLook{20};

// What the program is called that has the headers precompiled.
std::string program_of(const Recipe& recipe) {
  return recipe.unit.kind() == "cccl" ? kCcclHeadersProgram : recipe.unit.name();
}

// Whether a diagnostic in this line, `name(line): …`, is about the headers: any other file than the program, or the
// program's own leading directives.
bool speaks_of_headers(std::string_view line, std::string_view program, std::size_t leading_lines) {
  const std::size_t end = line.find("): ");
  const std::size_t open = end == std::string_view::npos ? end : line.rfind('(', end);
  if (open == std::string_view::npos || open + 1 == end || end - open > 9) return false;
  std::size_t number = 0;
  for (const char c : line.substr(open + 1, end - open - 1)) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) return false;
    number = number * 10 + static_cast<std::size_t>(c - '0');
  }
  return line.substr(0, open) != program || number <= leading_lines;
}

// The compiler says once what it finds wrong with headers, when it parses them. Who uses them precompiled would miss
// it.
bool log_speaks_of_headers(std::string_view log, const Recipe& recipe, std::string_view leading) {
  const auto lines = static_cast<std::size_t>(std::count(leading.begin(), leading.end(), '\n'));
  const std::vector<std::string_view> said = split(log, '\n');
  return std::any_of(said.begin(), said.end(),
                     [&](std::string_view line) { return speaks_of_headers(line, program_of(recipe), lines); });
}

bool names_program(const Recipe& recipe, std::string_view leading, const std::vector<Observation>& observations) {
  std::vector<std::string_view> texts = options_of(recipe);
  for (const Header& header : recipe.unit.headers()) texts.push_back(header.content);
  texts.push_back(leading);
  return std::any_of(texts.begin(), texts.end(), could_name_its_program) ||
         std::any_of(observations.begin(), observations.end(), [&](const Observation& observation) {
           if (observation.state != Observation::State::Read) return false;
           const auto text = read_file(join_path(recipe.working_directory, observation.path));
           return !text || !*text || could_name_its_program((*text)->view());
         });
}

// Why what this unit has made of its headers would not do for another; empty where it does.
std::string why_not_for_others(const Recipe& recipe, const WorkerReply& reply) {
  // An algorithm of CCCL's is no program, and its headers come before all of it.
  const std::string source = recipe.unit.kind() == "cccl" ? std::string() : recipe.unit.whole_source();
  const std::string_view leading = leading_directives(source);
  if (log_speaks_of_headers(reply.compiled.artifact.about.log, recipe, leading)) return "the compiler warns of them";
  if (names_program(recipe, leading, reply.pch.observations)) return "they use __BASE_FILE__";
  return {};
}

}  // namespace

PrecompiledHeaders::PrecompiledHeaders(FindShelf shelf, FileDigests& digests, Observer observer)
    : find_shelf_(std::move(shelf)), digests_(digests), observer_(std::move(observer)) {}

// Unlike a Key this names places: a precompiled header has the paths of its files in it, and never leaves the host.
Digest PrecompiledHeaders::digest_of(const Recipe& recipe, const std::vector<std::string>& start) {
  const Unit& unit = recipe.unit;
  Writer out;
  out.text("kiln pch 2").text(recipe.working_directory).text(unit.kind());
  const auto list = [&](const std::vector<std::string>& texts) {
    out.u32(static_cast<std::uint32_t>(texts.size()));
    for (const std::string& text : texts) out.text(text);
  };
  list(start);
  out.text(recipe.target.architecture).u8(static_cast<std::uint8_t>(recipe.target.form));
  out.digest(recipe.compiler.digest).u32(static_cast<std::uint32_t>(recipe.compiler.environment.size()));
  for (const auto& [name, value] : recipe.compiler.environment) out.text(name).text(value);
  list(unit.options());
  const std::vector<IncludeRoot> roots = recipe.places().roots;
  out.u32(static_cast<std::uint32_t>(roots.size()));
  for (const IncludeRoot& root : roots) out.text(root.path).text(root.seal);
  for (const Header& header : unit.headers()) out.text(header.name).text(header.content);
  return sha256(out.bytes());
}

std::optional<Digest> PrecompiledHeaders::headers_of(const Recipe& recipe) {
  std::call_once(found_, [this] {
    // Without memory for it there is none, which costs time. An exception must not leave this: see base/once.hpp.
    attempt([this] {
      if (auto options = find_shelf_()) shelf_ = std::make_unique<PchShelf>(std::move(*options));
    });
  });
  if (shelf_ == nullptr) return std::nullopt;
  const Unit& unit = recipe.unit;
  if (has_debug_options(recipe)) return std::nullopt;
  if (unit.kind() == "cccl") {
    const auto spec = cccl::Spec::parse(unit.source());
    if (!spec) return std::nullopt;
    CcclHeaders headers = cccl_headers(spec->algorithm, recipe.target);
    if (headers.includes.empty()) return std::nullopt;
    std::vector<std::string> start = std::move(headers.options);
    start.insert(start.end(), headers.includes.begin(), headers.includes.end());
    return digest_of(recipe, start);
  }
  if (unit.kind() != "cuda") return std::nullopt;
  const std::string source = unit.whole_source();
  const std::string_view start = leading_directives(source);
  if (start.empty()) return std::nullopt;
  // A header in quotes is looked for beside the program first.
  return digest_of(recipe, {std::string(start), folder_of(unit.name())});
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

PrecompiledHeaders::Underway::Underway(PrecompiledHeaders& owner, const Digest& headers)
    : owner_(owner), headers_(headers) {
  const MutexLock lock(owner_.mutex_);
  owner_.sights_[headers_].making = system_clock().steady();
}

PrecompiledHeaders::Underway::~Underway() {
  const MutexLock lock(owner_.mutex_);
  owner_.sights_[headers_].making.reset();
  owner_.made_.notify_all();
}

// Whether there was somebody to wait for, and he is done.
bool PrecompiledHeaders::wait_for_maker(const Recipe& recipe, const Digest& headers) {
  const Deadline deadline(system_clock(), kLongestWait);
  const MutexLock lock(mutex_);
  const Sight& sight = sights_[headers];
  if (!sight.making || system_clock().steady() - *sight.making < kWorthWaiting) return false;
  while (sight.making && deadline.left().count() > 0 && !recipe.stop.stop_requested()) made_.wait_for(mutex_, kLook);
  return !sight.making;
}

void PrecompiledHeaders::tell(Event::Kind kind, const Recipe& recipe, std::string message) const {
  if (!observer_) return;
  Event event = event_of(kind, recipe.unit, recipe.target, recipe.flow);
  event.origin = "headers";
  event.message = std::move(message);
  observer_.tell(event);
}

// Making one costs a fifth of a compile and saves four fifths of the next: worth it from the second unit on. Those of
// CCCL's algorithms are made apart from any compile and serve half of all algorithms: worth it for three of these.
bool PrecompiledHeaders::is_worth_making(const Recipe& recipe, const Digest& headers) {
  {
    const MutexLock lock(mutex_);
    if (unavailable_) return false;
    const Sight& sight = sights_[headers];
    if (sight.vain >= kMostVain) return false;
    if (sight.interested > 1 || sight.seen) return true;
    if (recipe.unit.kind() == "cccl" && recipe.company >= kCompanyWorthIt) return true;
  }
  return shelf_->asked_before(headers);
}

std::optional<PrecompiledHeaders::Plan> PrecompiledHeaders::use(const Recipe& recipe, const Digest& headers) {
  std::string damage;
  auto pch = shelf_->find(headers, &damage);
  if (!damage.empty()) tell(Event::Kind::HeadersDropped, recipe, damage);
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
  if (!is_worth_making(recipe, headers)) return plan;
  plan.making = shelf_->begin(headers);
  if (plan.making == nullptr) {
    auto ready = wait_for_maker(recipe, headers) ? use(recipe, headers) : std::nullopt;
    return ready ? std::move(*ready) : std::move(plan);
  }
  // Somebody may have made it between our look and our beginning.
  if (auto ready = use(recipe, headers)) return std::move(*ready);
  plan.underway = std::make_unique<Underway>(*this, headers);
  plan.order = {PchOrder::Mode::Create, plan.making->path(), 0, 0};
  return plan;
}

void PrecompiledHeaders::drop(const Recipe& recipe, const Digest& headers, const std::string& why) {
  shelf_->remove(headers);
  tell(Event::Kind::HeadersDropped, recipe, why);
}

void PrecompiledHeaders::give_up(const Recipe& recipe, const Digest& headers, const std::string& why) {
  {
    const MutexLock lock(mutex_);
    ++sights_[headers].vain;
  }
  tell(Event::Kind::HeadersUnavailable, recipe, "not kept: " + why);
}

void PrecompiledHeaders::keep(Plan& plan, const Recipe& recipe, const WorkerReply& reply) {
  const PchReport& report = reply.pch;
  BuiltClosure built = build_closure(recipe, report.observations, false, {}, digests_);
  std::string why = std::move(built.not_cacheable);
  if (why.empty()) why = why_not_for_others(recipe, reply);
  if (!why.empty()) return give_up(recipe, plan.headers, why);
  Pch pch{{}, report.size, report.checksum, std::move(built.closure), report.observations};
  // The compiler asks for a file of the program's own name, which is no one else's.
  const std::string program = tidy_path(program_of(recipe));
  std::erase_if(pch.observations, [&](const Observation& observation) {
    return observation.state != Observation::State::Read && tidy_path(observation.path) == program;
  });
  const Status published = plan.making->publish(pch);
  if (published) {
    tell(Event::Kind::HeadersKept, recipe, std::to_string(report.size >> 20) + " MB of precompiled headers");
  } else {
    give_up(recipe, plan.headers, published.error().message);
  }
}

std::vector<Observation> PrecompiledHeaders::settle(Plan& plan, const Recipe& recipe, const WorkerReply& reply) {
  switch (reply.pch.outcome) {
    case PchReport::Outcome::Used:
      tell(Event::Kind::HeadersUsed, recipe, std::to_string(plan.order.size >> 20) + " MB of precompiled headers");
      return join(std::move(plan.observations), reply.observations);
    case PchReport::Outcome::Created:
      if (plan.making == nullptr) break;  // nobody had ordered it
      keep(plan, recipe, reply);
      plan.making.reset();
      plan.underway.reset();  // whoever waits finds it
      break;
    case PchReport::Outcome::Refused:
      if (plan.order.mode == PchOrder::Mode::Use) drop(recipe, plan.headers, "refused: " + reply.pch.reason);
      if (plan.order.mode == PchOrder::Mode::Create) give_up(recipe, plan.headers, reply.pch.reason);
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
