// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/jit_command.hpp"

#include <filesystem>
#include <tuple>

#include "apps/kiln/jit/jit_report.hpp"
#include "apps/kiln/jit/place.hpp"
#include "apps/kiln/jit/scan.hpp"
#include "base/error.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "session/access.hpp"

namespace kiln::cli {
namespace {

std::string profile_of(const Arguments& arguments) { return arguments.profile.empty() ? "default" : arguments.profile; }

Result<jit::Limits> limits_of(const Arguments& arguments) {
  jit::Limits limits;
  limits.time = std::chrono::seconds(arguments.seconds);
  const std::tuple<const char*, const std::string&, std::uint64_t&> sizes[] = {
      {"--max-entry", arguments.max_entry, limits.entry_bytes},
      {"--max-system", arguments.max_system, limits.system_bytes},
      {"--max-size", arguments.max_size, limits.total_bytes}};
  for (const auto& [option, text, bytes] : sizes) {
    if (text.empty()) continue;
    const auto size = parse_size(text);
    if (!size) return make_error(size.error().code, std::string(option) + ": " + size.error().message);
    bytes = *size;
  }
  return limits;
}

Result<jit::PlanOptions> plan_options(const Arguments& arguments, const Config& config) {
  jit::PlanOptions options;
  options.systems = arguments.external;
  options.host_code = arguments.host_code;
  options.configured_host_code = config.jit_host_code;
  for (const std::string& each : arguments.roots) {
    const std::size_t equals = each.find('=');
    if (equals == std::string::npos || equals + 1 == each.size())
      return make_error(Code::InvalidArgument, "--root " + each + ": use SYSTEM=DIR");
    std::error_code error;
    const std::filesystem::path root = std::filesystem::absolute(each.substr(equals + 1), error);
    if (error)
      return make_error(Code::InvalidArgument, "--root " + each + ": the working directory cannot be read: " +
                                                   error.message() + "; use an absolute path");
    options.roots.emplace_back(each.substr(0, equals), root.lexically_normal().string());
  }
  return options;
}

}  // namespace

Result<std::unique_ptr<JitCommand>> JitCommand::open(const Arguments& arguments, Console& console,
                                                     const std::vector<std::string>& command) {
  auto made = std::unique_ptr<JitCommand>(new JitCommand);
  auto limits = limits_of(arguments);
  if (!limits) return limits.error();
  made->limits = *limits;
  auto rules = jit::load_rules(arguments.rules);
  if (!rules) return rules.error();
  made->rules = std::move(*rules);
  SessionOptions options;
  options.on_event = console.listener();
  auto session = Session::open(std::move(options));
  if (!session) return session.error();
  made->session = std::make_unique<Session>(std::move(*session));
  const Config& config = detail::SessionAccess::components(*made->session).config();
  auto how = plan_options(arguments, config);
  if (!how) return how.error();
  if (!command.empty() && !config.disable && !config.cache_path.empty()) {
    (void)make_directories(config.cache_path.front(), 0755);  // as a store creates it; check_roots reports a failure
    how->own_roots = own_roots(config);
  }
  const auto python = jit::PythonEnvironment::of(command);
  if (!python.problem.empty()) console.warn(python.problem);
  auto plans = jit::plan_systems(made->rules, python, *how);
  if (!plans) return plans.error();
  made->plans = std::move(*plans);
  for (jit::SystemPlan& plan : made->plans) {
    if (config.disable) plan.skipped = "kiln is disabled (KILN_DISABLE)";
  }
  made->profile = profile_of(arguments);
  made->host_code = config.jit_host_code;
  made->host_code.insert(made->host_code.end(), arguments.host_code.begin(), arguments.host_code.end());
  return made;
}

void JitCommand::report_unknown_names() const {
  for (const jit::SystemPlan& plan : plans) {
    if (plan.system.rule == nullptr) warn(plan.system.system, plan.skipped);
  }
  for (const std::string& name : detail::SessionAccess::components(*session).config().jit_host_code) {
    if (name == jit::kAdapterName) continue;
    if (const std::string problem = jit::unknown_system(rules, name); !problem.empty())
      warn(name, "jit.host_code: " + problem);
  }
}

void JitCommand::check_roots(Console& console) {
  for (jit::SystemPlan& plan : plans) {
    if (!plan.skipped.empty() || plan.variable_value.empty()) continue;
    if (Status usable = jit::check_writable_root(plan.root); !usable) {
      plan.skipped = "it keeps its own cache directory: " + usable.error().message;
      console.warn(plan.system.system + ": " + plan.skipped);
    }
  }
}

std::vector<jit::FillReport> JitCommand::fill() const {
  std::vector<jit::FillReport> reports;
  const jit::JitTiers tiers(*session, profile);
  const Deadline deadline(limits.time);
  std::uint64_t used = 0;
  for (const jit::SystemPlan& plan : plans) {
    if (!plan.skipped.empty()) continue;
    const auto start = system_clock().steady();
    reports.push_back(jit::fill(tiers, plan.system, plan.root, limits, deadline, used));
    emit_events(session->event_callback(), reports.back(), milliseconds_since(system_clock(), start));
    used += reports.back().bytes;
  }
  return reports;
}

std::vector<jit::PublishReport> JitCommand::publish(std::chrono::nanoseconds settle) const {
  std::vector<jit::PublishReport> reports;
  const jit::JitTiers tiers(*session, profile);
  const Deadline deadline(limits.time);
  for (const jit::SystemPlan& plan : plans) {
    if (!plan.skipped.empty()) continue;
    const auto start = system_clock().steady();
    reports.push_back(jit::publish(tiers, plan.system, plan.root, limits, deadline, settle));
    emit_events(session->event_callback(), reports.back(), milliseconds_since(system_clock(), start));
  }
  return reports;
}

void JitCommand::warn(const std::string& system, const std::string& message) const {
  const EventCallback emit = session->event_callback();
  if (!emit) return;
  Event event;
  event.kind = Event::Kind::ConfigWarning;
  event.unit = system;
  event.message = message;
  emit(event);
}

std::string own_roots(const Config& config) {
  return config.cache_path.empty() ? std::string() : config.cache_path.front() + "/jit";
}

std::vector<std::string> root_entries(const jit::SystemPlan& plan) {
  if (plan.system.rule == nullptr) return {};
  const auto root = jit::open_root(plan.root, false);
  return root ? jit::find_entries(root->get(), *plan.system.rule) : std::vector<std::string>();
}

}  // namespace kiln::cli
