#include "runtime/wishes.hpp"

#include "base/environment.hpp"

namespace kiln::runtime {
namespace {

constexpr const char* kMode = "KILN_EXECUTION_MODE";
constexpr const char* kRewrites = "KILN_REWRITES";
constexpr const char* kTimeStages = "KILN_TIME_STAGES";

// An empty variable is as if it were not set.
std::optional<std::string> value_of(const char* name) {
  auto value = environment_variable(name);
  if (value && value->empty()) value.reset();
  return value;
}

std::optional<bool> parse_switch(const std::string& text) {
  if (text == "on" || text == "1") return true;
  if (text == "off" || text == "0") return false;
  return std::nullopt;
}

// The value itself is somebody's text of any length: it is not repeated.
std::string complaint(const char* name, const char* good) {
  return std::string(name) + " is none of " + good + "; it counts as not set";
}

}  // namespace

Environment Environment::read() {
  Environment made;
  if (const auto text = value_of(kMode)) {
    made.mode = parse_mode(*text);
    if (!made.mode) made.complaints.push_back(complaint(kMode, "auto, cpu, gpu"));
  }
  if (const auto text = value_of(kRewrites)) {
    made.rewrites = parse_switch(*text);
    if (!made.rewrites) made.complaints.push_back(complaint(kRewrites, "on, off"));
  }
  if (const auto text = value_of(kTimeStages)) {
    const auto on = parse_switch(*text);
    made.time_stages = on.value_or(false);
    if (!on) made.complaints.push_back(complaint(kTimeStages, "1, 0"));
  }
  return made;
}

const char* asked_by(Source source) {
  switch (source) {
    case Source::Override: return "the program";
    case Source::Environment: return kMode;
    case Source::Default: break;
  }
  return "default";
}

}  // namespace kiln::runtime
