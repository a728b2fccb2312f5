#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace kiln::test {

/// The rules of docs/trace.md, one function each, over the events of a trace in the order of the file.
class PerfettoRules {
 public:
  using Json = nlohmann::json;

  std::vector<std::string> check(const std::string& text) {
    const Json trace = Json::parse(text, nullptr, false);  // refuses what is not UTF-8 or not a number
    if (trace.is_discarded() || !trace.is_object() || !trace.contains("traceEvents")) {
      return {"it is not a JSON object with traceEvents"};
    }
    check_text(text);
    const Json& events = trace["traceEvents"];
    if (!events.is_array()) return {"traceEvents is not an array"};
    for (const Json& event : events) {
      where_ = event.dump();
      if (!check_fields(event)) continue;
      check_times(event);
      check_names(event);
      check_nesting(event);
      check_flow(event);
      last_ = &event;
    }
    where_ = "at the end";
    for (const auto& [id, phase] : flows_) {
      if (phase != "f") complain("flow " + id + " does not end");
    }
    return std::move(problems_);
  }

 private:
  using Track = std::pair<std::uint64_t, std::uint64_t>;

  void complain(const std::string& problem) { problems_.push_back(problem + ": " + where_); }
  static std::string phase_of(const Json& event) { return event["ph"].get<std::string>(); }
  static Track track_of(const Json& event) {
    return {event["pid"].get<std::uint64_t>(), event["tid"].get<std::uint64_t>()};
  }
  static std::string string_of(const Json& object, const char* field) {
    const auto at = object.find(field);
    return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
  }

  void check_text(const std::string& text) {
    where_ = "the text";
    if (text.rfind("{\"traceEvents\":[", 0) != 0) complain("it does not begin with traceEvents");
    bool escaped = false;
    for (const char c : text) {
      if (escaped && c == 'u') return complain("a \\u escape");
      if (c == 0x7F) return complain("a control character");
      escaped = c == '\\' && !escaped;
    }
  }

  bool check_fields(const Json& event) {
    const std::size_t before = problems_.size();
    if (!event.is_object()) {
      complain("an event is no object");
      return false;
    }
    static const std::set<std::string> kPhases = {"M", "X", "i", "s", "t", "f"};
    if (kPhases.count(string_of(event, "ph")) == 0) complain("an unknown phase");
    if (string_of(event, "name").empty()) complain("no name");
    for (const char* field : {"pid", "tid"}) {
      const bool number = event.contains(field) && event[field].is_number_unsigned();
      if (!number || event[field].get<std::uint64_t>() == 0 ||
          event[field].get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max()) {
        complain(std::string(field) + " is not a positive number of 32 bits");
      }
    }
    for (const char* field : {"ts", "dur"}) {
      const bool wanted = std::string(field) == "ts" || string_of(event, "ph") == "X";
      if (wanted != event.contains(field)) complain(std::string(field) + " is missing or too much");
      if (event.contains(field) && !event[field].is_number()) complain(std::string(field) + " is not a number");
    }
    for (const auto& [field, value] : event.items()) {
      if (value.is_array()) complain("an array as " + field);
    }
    return problems_.size() == before;
  }

  void check_times(const Json& event) {
    for (const char* field : {"ts", "dur"}) {
      if (!event.contains(field)) continue;
      const double time = event[field].get<double>();
      if (time < 0 || std::floor(time * 8) != time * 8) complain(std::string(field) + " is no eighth of a microsecond");
    }
    if (phase_of(event) == "M") return;
    if (event["ts"].get<double>() < now_) complain("out of the order of time");
    now_ = event["ts"].get<double>();
  }

  void check_names(const Json& event) {
    const std::string name = string_of(event, "name");
    if (phase_of(event) == "M") {
      const std::string said = event.contains("args") ? string_of(event["args"], "name") : "";
      if (said.empty()) complain("a name is empty");
      if (name == "process_name") named_processes_.insert(track_of(event).first);
      if (name == "thread_name" && !named_.insert(track_of(event)).second) complain("a track has two names");
      return;
    }
    if (string_of(event, "cat").empty()) complain("no category");
    if (named_processes_.count(track_of(event).first) == 0) complain("its process has no name");
    const bool of_process = string_of(event, "s") == "p";
    if (!of_process && named_.count(track_of(event)) == 0) complain("its track has no name");
    if (phase_of(event) == "i" && !of_process && string_of(event, "s") != "t") complain("an instant of no scope");
  }

  void check_nesting(const Json& event) {
    if (phase_of(event) != "X") return;
    const double start = event["ts"].get<double>();
    const double end = start + event["dur"].get<double>();
    if (end <= start) complain("a slice without duration");
    auto& open = open_[track_of(event)];
    while (!open.empty() && open.back().second <= start) open.pop_back();
    if (!open.empty() && open.back().second < end) complain("it overlaps another and is not inside it");
    if (!open.empty() && open.back().first == start) complain("it begins together with another of its track");
    open.emplace_back(start, end);
  }

  void check_flow(const Json& event) {
    const std::string phase = phase_of(event);
    if (phase != "s" && phase != "t" && phase != "f") return;
    if (!event.contains("id") || !event["id"].is_number_unsigned()) return complain("a flow without id");
    if (string_of(event, "bp") != "e") complain("a flow that does not bind to the slice around it");
    if (last_ == nullptr || phase_of(*last_) != "X" || track_of(*last_) != track_of(event) ||
        (*last_)["ts"] != event["ts"]) {
      complain("a flow that does not follow its slice");
    }
    const std::string id = event["id"].dump() + ' ' + string_of(event, "cat") + ' ' + string_of(event, "name");
    std::string& before = flows_[id];
    if ((phase == "s") != before.empty()) complain("a flow begins twice or not at all");
    if (before == "f") complain("a flow goes on after its end");
    before = phase;
  }

  std::vector<std::string> problems_;
  std::string where_;
  double now_ = 0;
  const Json* last_ = nullptr;
  std::set<std::uint64_t> named_processes_;
  std::set<Track> named_;
  std::map<Track, std::vector<std::pair<double, double>>> open_;
  std::map<std::string, std::string> flows_;  // the last phase of each
};

/// What is wrong with a trace; nothing where Perfetto's importer of JSON takes all of it.
inline std::vector<std::string> trace_problems(const std::string& json) { return PerfettoRules().check(json); }

}  // namespace kiln::test
