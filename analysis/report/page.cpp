#include "analysis/report/page.hpp"

#include "analysis/report/page_files.hpp"
#include "base/hash.hpp"

namespace kiln::report {
namespace {

std::string base64(const Digest& digest) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < digest.bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, digest.bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? digest.bytes[i + k] : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

// Replaces the placeholders of a template with values. Values are not searched for placeholders.
std::string filled(std::string_view text, std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = text.find("{{");
    const std::size_t end = begin == std::string_view::npos ? begin : text.find("}}", begin);
    out += text.substr(0, end == std::string_view::npos ? text.size() : begin);
    if (end == std::string_view::npos) break;
    const std::string_view name = text.substr(begin + 2, end - begin - 2);
    for (const auto& [known, value] : values) {
      if (known == name) out += value;
    }
    text.remove_prefix(end + 2);
  }
  return out;
}

std::string title_of(const Model& model) {
  std::string title = "kiln report";
  for (std::size_t i = 0; i < model.programs.size() && i < 3; ++i)
    title += (i == 0 ? ": " : ", ") + model.programs[i].name;
  return title;
}

std::string lead_of(const Model& model) {
  const auto runs = format_count(model.runs.size(), "run", "runs");
  std::string text = runs + " of " + format_count(model.programs.size(), "program", "programs") + ". ";
  if (model.waits.empty()) return text + "The traces contain no waits.";
  const Wait& longest = model.waits.front();
  text += "The longest wait was " + format_duration(longest.ms) + ", by thread " + longest.who + " in the " +
          model.runs[longest.run].label + " run of " + model.runs[longest.run].process;
  return text + (longest.unit.empty() ? "." : ", for " + longest.unit + '.');
}

std::string body_of(const Model& model) {
  Html to;
  put_programs(to, model);
  put_waits(to, model);
  put_timelines(to, model);
  put_tiers(to, model);
  put_units(to, model);
  put_misses(to, model);
  put_audit(to, model);
  put_problems(to, model);
  put_traces(to, model);
  return to.take();
}

}  // namespace

std::string name_of(const Run& run) { return run.process + ", " + run.label; }

void put_label(Html& to, const Run& run) {
  const std::string kind = run.label.substr(0, run.label.find(' '));
  to.put("span", {{"class", "chip " + kind}}, run.label);
}

void put_more(Html& to, std::size_t shown, std::size_t all, const char* what) {
  if (shown >= all) return;
  to.put("p", {{"class", "note"}},
         "The first " + std::to_string(shown) + " of " + std::to_string(all) + ' ' + what + " are shown.");
}

const char* color_of(Phase::Kind kind) {
  switch (kind) {
    case Phase::Kind::Queue: return "idle";
    case Phase::Kind::Claim: return "wait";
    case Phase::Kind::Find: return "find";
    case Phase::Kind::Compile: return "compile";
    case Phase::Kind::Publish: return "copy";
    case Phase::Kind::WaitForLoad: return "idle";
    case Phase::Kind::Load: return "load";
    case Phase::Kind::Ready: return "idle";
    case Phase::Kind::Launch: return "launch";
  }
  return "other";
}

std::string page(const Model& model) {
  const std::string script = kPageScript;
  // The content security policy allows only this script and no network access, even if a trace contains hostile names.
  return filled(kPageTemplate, {{"title", escaped(title_of(model))},
                                {"script_digest", base64(sha256(script))},
                                {"style", kPageStyle},
                                {"lead", escaped(lead_of(model))},
                                {"body", body_of(model)},
                                {"model", json_in_html(model_json(model, -1))},
                                {"script", script}});
}

}  // namespace kiln::report
