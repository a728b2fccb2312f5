// kiln bundle units: the units of a kiln.toml as C++, for the program that has the bundle.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <set>
#include <string_view>

#include <kiln/unit.hpp>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output.hpp"
#include "apps/kiln/render_bundle_json.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "session/manifest.hpp"

namespace kiln::cli {
namespace {

constexpr std::size_t kLongestLiteral = 16384;  // compilers need not take more than 65536, an octal escape being one

std::string literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      char octal[8];
      std::snprintf(octal, sizeof octal, "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += octal;
    }
  }
  return out + '"';
}

// `heat.cu` is heat_cu.
std::string identifier(std::string_view name) {
  std::string out(name);
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out.insert(0, "unit_");
  return out;
}

// One line of it in each statement: people read it too.
std::string source_text(std::string_view source) {
  std::string out;
  while (!source.empty()) {
    const std::size_t line_end = std::min(source.find('\n'), source.size() - 1) + 1;
    const std::string_view line = source.substr(0, std::min(line_end, kLongestLiteral));
    out += "  source += " + literal(line) + ";\n";
    source.remove_prefix(line.size());
  }
  return out;
}

// A program may be moved, and the folder of its kiln.toml means nothing where it goes.
std::string without_folder(const std::string& path, const std::string& folder) {
  const std::string prefix = folder + '/';
  return path == folder ? "." : path.starts_with(prefix) ? path.substr(prefix.size()) : path;
}

std::string function_text(const Unit& unit, const std::string& folder) {
  std::string out = "inline kiln::Unit " + identifier(unit.name()) + "() {\n  std::string source;\n" +
                    source_text(unit.source()) + "  return kiln::Unit::" + unit.kind() + '(' + literal(unit.name()) +
                    ", std::move(source))";
  for (const std::string& entry : unit.entries()) out += "\n      .entry(" + literal(entry) + ')';
  for (const IncludeRoot& root : unit.include_roots()) {
    out += "\n      .include_root(" + literal(without_folder(root.path, folder)) + ')';
  }
  for (const std::string& option : unit.options()) out += "\n      .option(" + literal(option) + ')';
  return out + ";\n}\n\n";
}

// A C++ header with one function for each source of a kiln.toml, which returns the unit that a bundle of that file has:
// so that a program which has the bundle asks for what is in it, and the source is written once. CCCL's algorithms are
// not in it, because a program names those by their specs.
Result<std::string> unit_header(const std::string& manifest, const std::string& name_space) {
  const Result<Manifest> listed = read_manifest(manifest);
  if (!listed) return listed.error();
  std::string text =
      "// Made by kiln: the units of a kiln.toml, as its bundle has them. Do not edit.\n#pragma once\n\n"
      "#include <string>\n#include <utility>\n#include <vector>\n\n#include <kiln/unit.hpp>\n\nnamespace " +
      identifier(name_space) + " {\n\n";
  std::string all;
  std::set<std::string> names = {"all"};
  for (const Manifest::Member& member : listed->members) {
    if (member.spec) continue;
    const Result<Unit> unit = read_unit(member.source);
    if (!unit) return unit.error();
    const std::string name = identifier(unit->name());
    if (!names.insert(name).second) {
      return failure(Code::InvalidArgument, manifest + ": the unit " + unit->name() + " would be the function " + name +
                                                " of the header, and there is one already; give it another name");
    }
    if (unit->source().find('\0') != std::string::npos) {
      return failure(Code::InvalidArgument, member.source.file + " has a zero byte in it");
    }
    text += function_text(*unit, folder_of(manifest));
    all += (all.empty() ? "" : ", ") + name + "()";
  }
  return text + "inline std::vector<kiln::Unit> all() { return {" + all + "}; }\n\n}  // namespace " +
         identifier(name_space) + "\n";
}

}  // namespace

int bundle_units_command(const Arguments& arguments, Console& console) {
  // include/heat_units.hpp has the namespace heat_units.
  const std::string file = arguments.output.substr(arguments.output.rfind('/') + 1);
  const std::string name_space = arguments.output == "-" ? "units" : file.substr(0, file.find('.'));
  const Result<std::string> text = unit_header(arguments.manifest, name_space);
  if (!text) return report(text.error(), console);
  if (arguments.output == "-") {
    const Status shown = write_output("-", *text);
    return shown ? kDone : report(shown.error(), console);
  }
  // One that is right already is left alone, so that nothing is built again for it.
  const Result<std::optional<Bytes>> before = read_file(arguments.output);
  const bool differs = !before || !*before || (*before)->view() != *text;
  if (differs) {
    if (const Status written = replace_file(arguments.output, *text); !written) {
      return report(written.error(), console);
    }
  }
  console.print(arguments.json ? bundle_units_json(arguments.output, differs)
                               : arguments.output + (differs ? " was written" : " is right as it is"));
  return kDone;
}

}  // namespace kiln::cli
