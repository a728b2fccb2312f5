// SPDX-License-Identifier: Apache-2.0
// kiln split: proposes the kernel family of a source with many macro or template instances, as a kiln.toml.
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/compile/unit_arguments.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/json_common.hpp"
#include "apps/kiln/output/output.hpp"
#include "apps/kiln/split/kernel_family.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/format.hpp"
#include "base/visible_text.hpp"

namespace kiln::cli {
namespace {

constexpr std::size_t kMaxSourceSize = 16 << 20;
constexpr std::size_t kMaxHeaders = 1000;
constexpr std::size_t kMaxHeaderSize = 64 << 20;  // of all headers

Result<std::string> read_source(const std::string& path) {
  if (const std::optional<FileStamp> stamp = stamp_of(path.c_str()); stamp && stamp->size > kMaxSourceSize) {
    return make_error(Code::InvalidArgument, path + ": the file is larger than 16 MiB");
  }
  const Result<std::optional<Bytes>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  if (!*bytes) return make_error(Code::Io, "there is no file " + path);
  return std::string((*bytes)->view());
}

// Returns the path of a quoted include of a file: next to the file, or in an include directory. Empty if it is missing.
std::string find_header(const std::string& name, const std::string& includer, const Arguments& arguments) {
  std::vector<std::string> candidates = {join_path(parent_path(includer), name)};
  for (const std::string& directory : arguments.include_directories) candidates.push_back(join_path(directory, name));
  for (const std::string& path : candidates) {
    if (stamp_of(path.c_str())) return normalize_path(path);
  }
  return {};
}

// Returns the texts of the headers that a source includes in quotes, directly or through others.
Result<std::vector<std::string>> read_headers(const std::string& file, const std::string& text,
                                              const Arguments& arguments) {
  std::vector<std::string> texts;
  std::set<std::string> seen;
  std::size_t size = 0;
  std::vector<std::pair<std::string, std::string>> includers = {{file, text}};
  for (std::size_t i = 0; i < includers.size(); ++i) {
    for (const std::string& name : quoted_includes(includers[i].second)) {
      const std::string path = find_header(name, includers[i].first, arguments);
      if (path.empty() || !seen.insert(path).second) continue;
      Result<std::string> header = read_source(path);
      if (!header) return header.error();
      size += header->size();
      if (seen.size() > kMaxHeaders || size > kMaxHeaderSize)
        return make_error(Code::InvalidArgument, file + " includes too many headers");
      texts.push_back(*header);
      includers.emplace_back(path, std::move(*header));
    }
  }
  return texts;
}

// Returns the definitions of -D as a header.
std::string definition_text(const std::vector<std::string>& definitions) {
  std::string text;
  for (std::string one : definitions) {
    const std::size_t equal = one.find('=');
    if (equal != std::string::npos) one[equal] = ' ';
    text += "#define " + one + '\n';
  }
  return text;
}

// Returns a TOML string.
std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(byte));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string toml_list(const std::vector<std::string>& texts) { return '[' + join_strings(texts, toml_text) + ']'; }

bool is_bare_key(std::string_view key) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  return key.find_first_not_of(kLetters) == std::string_view::npos;
}

// Returns a path as seen from the directory of another file.
std::string relative_to(const std::string& path, const std::string& file) {
  std::error_code failed;
  const std::filesystem::path relative = std::filesystem::relative(path, parent_path(file), failed);
  return failed || relative.empty() ? path : relative.string();
}

// The files that the command writes.
struct Proposal {
  std::string source;
  KernelFamily family;
  std::string manifest;  ///< path of the kiln.toml
  std::string preamble;  ///< path of the preamble: the source, a header that it includes, or a new file
  bool writes_preamble = false;
};

Result<Proposal> propose(const Arguments& arguments) {
  Proposal proposal;
  proposal.source = arguments.files.front();
  proposal.manifest = arguments.output.empty() ? "kiln.toml" : arguments.output;
  const Result<std::string> text = read_source(proposal.source);
  if (!text) return text.error();
  Result<std::vector<std::string>> headers = read_headers(proposal.source, *text, arguments);
  if (!headers) return headers.error();
  headers->push_back(definition_text(arguments.definitions));
  const bool opencl = arguments.backend.empty() ? is_opencl_file(proposal.source) : arguments.backend == "opencl";
  proposal.family = find_kernel_family(*text, opencl, *headers, arguments.entries);
  const std::string& included = proposal.family.included_preamble;
  const std::string header = included.empty() ? "" : find_header(included, proposal.source, arguments);
  const std::filesystem::path source = proposal.source;
  // An instance must not continue the last line of the preamble.
  const Result<std::string> header_text = header.empty() ? Result<std::string>(std::string()) : read_source(header);
  if (header_text && header_text->ends_with('\n') && !header_text->ends_with("\\\n")) {
    proposal.preamble = header;
  } else if (!proposal.family.is_preamble_changed) {
    proposal.preamble = proposal.source;
  } else {
    proposal.writes_preamble = true;
    proposal.preamble =
        (source.parent_path() / (source.stem().string() + ".preamble" + source.extension().string())).string();
  }
  return proposal;
}

std::string manifest_text(const Proposal& proposal, const Arguments& arguments, const std::vector<Target>& targets) {
  const auto relative = [&](const std::string& path) { return relative_to(path, proposal.manifest); };
  const std::string name = arguments.name.empty() ? file_name(proposal.source) : arguments.name;
  std::string text = "# The family of " + visible_text(file_name(proposal.source)) + ", as 'kiln split' found it.\n";
  std::vector<std::string> architectures;
  for (const Target& target : targets) architectures.push_back(target.name());
  if (!architectures.empty()) text += "architectures = " + toml_list(architectures) + '\n';
  text += "\n[[family]]\nname = " + toml_text(name) + "\npreamble = " + toml_text(relative(proposal.preamble)) + '\n';
  if (!arguments.backend.empty()) text += "backend = " + toml_text(arguments.backend) + '\n';
  std::vector<std::string> includes;
  for (const std::string& directory : arguments.include_directories) includes.push_back(relative(directory));
  if (!includes.empty()) text += "include = " + toml_list(includes) + '\n';
  std::vector<std::string> options;
  for (const std::string& definition : arguments.definitions) options.push_back("-D" + definition);
  options.insert(options.end(), arguments.options.begin(), arguments.options.end());
  if (!options.empty()) text += "options = " + toml_list(options) + '\n';
  text += "\n[family.instances]\n";
  for (const KernelFamily::Instance& instance : proposal.family.instances) {
    text += (is_bare_key(instance.entry) ? instance.entry : toml_text(instance.entry)) + " = " +
            toml_text(instance.source) + '\n';
  }
  return text;
}

// Writes both files, or neither if one of them exists and must not be replaced.
Status write_files(const Proposal& proposal, const std::string& text, bool replaces) {
  std::map<std::string, std::string_view> files = {{proposal.manifest, text}};
  if (proposal.writes_preamble && !files.emplace(proposal.preamble, proposal.family.preamble).second) {
    return make_error(Code::InvalidArgument, proposal.manifest + " is the preamble; select another file with -o");
  }
  for (const auto& [path, content] : files) {
    if (exists(path) && !replaces) {
      return make_error(
          Code::InvalidArgument,
          path + " exists; nothing was written; add --force to replace it, or select another file with -o");
    }
  }
  for (const auto& [path, content] : files) {
    if (Status written = replaces ? replace_file(path, content) : write_new_file(path, content); !written)
      return written;
  }
  return {};
}

std::string split_json(const Proposal& proposal) {
  Json out{{"source", proposal.source},     {"manifest", proposal.manifest},
           {"preamble", proposal.preamble}, {"preamble_written", proposal.writes_preamble},
           {"instances", Json::array()},    {"omitted", Json::array()}};
  for (const KernelFamily::Instance& instance : proposal.family.instances) {
    out["instances"].push_back(
        {{"entry", instance.entry}, {"source", instance.source}, {"from", instance.origin}, {"line", instance.line}});
  }
  for (const KernelFamily::Omission& omission : proposal.family.omissions) {
    out["omitted"].push_back({{"line", omission.line}, {"reason", omission.reason}});
  }
  return text_of(out);
}

void print_proposal(const Proposal& proposal, Console& console) {
  const KernelFamily& family = proposal.family;
  std::map<std::string, std::vector<std::string>> found;
  for (const KernelFamily::Instance& instance : family.instances) found[instance.origin].push_back(instance.entry);
  std::vector<std::vector<std::string>> rows = {{"FROM", "INSTANCES", "KERNELS"}};
  for (const auto& [origin, entries] : found) {
    rows.push_back({origin, std::to_string(entries.size()), entries.front() + (entries.size() > 1 ? ", …" : "")});
  }
  console.print(table_text(rows));
  for (const KernelFamily::Omission& omission : family.omissions) {
    console.print("left out: " + proposal.source + ':' + std::to_string(omission.line) + ": " + omission.reason);
  }
  console.print(std::to_string(family.instances.size()) + " instances in " + proposal.manifest + "; the preamble is " +
                proposal.preamble + (proposal.writes_preamble ? ", a new file" : "") +
                "\nTry it with 'kiln compile --manifest " + proposal.manifest + "'.");
}

}  // namespace

int split_command(const Arguments& arguments, Console& console) {
  const Result<Proposal> proposal = propose(arguments);
  if (!proposal) return report(proposal.error(), console);
  const KernelFamily& family = proposal->family;
  if (family.instances.empty()) {
    for (const KernelFamily::Omission& omission : family.omissions) {
      console.warn(proposal->source + ':' + std::to_string(omission.line) + ": " + omission.reason);
    }
    console.error({Code::InvalidArgument,
                   proposal->source + " has no kernels of macros or templates that can be split; nothing was written"});
    return kFailed;
  }
  const Result<std::vector<Target>> targets = given_targets(arguments);
  if (!targets) return report(targets.error(), console);
  const std::string text = manifest_text(*proposal, arguments, *targets);
  if (const Result<Manifest> valid = parse_manifest(text, {}); !valid) {
    return report(
        make_error(valid.error().code, proposal->source + " cannot be listed in a kiln.toml: " + valid.error().message),
        console);
  }
  if (Status written = write_files(*proposal, text, arguments.force); !written) return report(written.error(), console);
  if (arguments.json) {
    console.print(split_json(*proposal));
  } else {
    print_proposal(*proposal, console);
  }
  return kSuccess;
}

}  // namespace kiln::cli
