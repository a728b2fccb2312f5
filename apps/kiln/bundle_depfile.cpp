#include "apps/kiln/bundle_depfile.hpp"

#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "core/closure.hpp"

namespace kiln::cli {
namespace {

std::string escaped(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (c == ' ' || c == '#') out += '\\';
    if (c == '$') out += '$';
    out += c;
  }
  return out;
}

std::string absolute(const std::string& path) {
  std::error_code unknown;
  const std::filesystem::path whole = std::filesystem::absolute(path, unknown);
  return unknown ? path : whole.lexically_normal().string();
}

void add_closure(std::set<std::string>& files, const Closure& closure, const Places& places) {
  for (const Closure::Item& item : closure.items) {
    const bool sealed = item.state == Closure::State::Sealed && item.root < places.roots.size();
    if (sealed) files.insert(absolute(places.roots[item.root].seal));
    if (item.state == Closure::State::Read) files.insert(absolute(places.path_of(item.root, item.name)));
  }
}

}  // namespace

std::string depfile_text(const std::string& output, const std::string& manifest, const std::vector<Job>& jobs,
                         const std::vector<CompileOutcome>& outcomes) {
  std::set<std::string> files = {absolute(manifest)};
  const std::string here = absolute(".");
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Unit& unit = jobs[i].unit;
    if (unit.kind() == "cuda" || unit.kind() == "opencl") files.insert(absolute(jobs[i].file));
    const Result<Answer>& answer = outcomes[i].answer;
    if (answer && answer->artifact.closure != nullptr) {
      add_closure(files, *answer->artifact.closure, {here, unit.include_roots()});
    }
  }
  std::string text = escaped(absolute(output)) + ':';
  for (const std::string& file : files) text += " \\\n  " + escaped(file);
  return text + '\n';
}

}  // namespace kiln::cli
