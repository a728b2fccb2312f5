// SPDX-License-Identifier: Apache-2.0
// kiln init: writes a kiln.toml for this directory and a configuration file, both with comments. Overwrites nothing.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/json_common.hpp"
#include "apps/kiln/output/output.hpp"
#include "base/files/files.hpp"
#include "base/format.hpp"
#include "base/process/environment.hpp"
#include "session/config/settings.hpp"

namespace kiln::cli {
namespace {

constexpr std::size_t kMaxSources = 100;
constexpr std::uint64_t kMaxSourceBytes = std::uint64_t{4} << 20;

struct InitFile {
  std::string path;
  bool written = false;  ///< false if it existed before
};

// Returns true for a source with kernels and without launches, which only nvcc compiles.
bool is_unit(const std::string& path) {
  const std::optional<FileStamp> stamp = stamp_of(path.c_str());
  if (!stamp || stamp->size > kMaxSourceBytes) return false;
  const auto bytes = read_file(path);
  if (!bytes || !*bytes) return false;
  const std::string_view text = (*bytes)->view();
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return path.ends_with(".cl") ? has("kernel") : has("__global__") && !has("<<<");
}

// Returns the sources with kernels in this directory and in kernels/, sorted.
std::vector<std::string> find_units() {
  std::vector<std::string> found;
  for (const char* directory : {".", "kernels"}) {
    for (const std::string& name : list_directory(AT_FDCWD, directory)) {
      if (!name.ends_with(".cu") && !name.ends_with(".cl")) continue;
      std::string path = normalize_path(join_path(directory, name));
      // A name with other characters would have to be escaped in the file.
      const bool is_plain = std::none_of(
          path.begin(), path.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '"' || c == '\\'; });
      if (is_plain && is_unit(path)) found.push_back(std::move(path));
    }
  }
  std::sort(found.begin(), found.end());
  if (found.size() > kMaxSources) found.resize(kMaxSources);
  return found;
}

std::string new_manifest_text(const std::vector<std::string>& units) {
  std::string text =
      "# The GPU code of this project. Paths are relative to this file.\n"
      "#   kiln compile --manifest kiln.toml           compile what no cache has\n"
      "#   kiln bundle create kiln.toml -o app.kiln    put all of it into one file for other machines\n"
      "#   kiln warm --from kiln.toml                  fill the caches of a machine\n"
      "\n"
      "# Who signs a bundle of these units, and its release number.\n"
      "# namespace = \"acme/vision\"\n"
      "# epoch = 1\n"
      "\n"
      "# The GPUs to compile for: sm_80 also serves 8.6 and 8.9. OpenCL sources are compiled for the default device.\n"
      "architectures = [\"sm_80\", \"sm_90\"]\n";
  if (units.empty())
    text += "\n# No source with kernels was found here. One unit for each source:\n# [[unit]]\n# source = \"k.cu\"\n";
  std::set<std::string> names;
  for (const std::string& unit : units) {
    text += "\n[[unit]]\nsource = \"" + unit + "\"\n";
    // By default the base name of the file, which must be unique.
    if (!names.insert(file_name(unit)).second) text += "name = \"" + unit + "\"\n";
  }
  return text +
         "# include = [\"include\"]                  # directories with headers\n"
         "# options = [\"-std=c++17\", \"-DTILE=4\"] # passed to the compiler\n"
         "# entries = [\"k\", \"scale<float>\"]      # kernels to look up, and the instances of templates\n"
         "\n"
         "# An algorithm of NVIDIA's CCCL:\n"
         "# [[cccl]]\n"
         "# spec = \"radix_sort_u64_i32\"\n";
}

std::string toml_value(const std::string& text) {
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return is_number || text == "true" || text == "false" ? text : '"' + text + '"';
}

std::string config_text() {
  std::string text =
      "# Settings of kiln. Each line shows a default: remove the # to change it. Variables override this file, and\n"
      "# 'kiln config show' prints the value that is in effect and its source.\n";
  for (const SettingSpec& setting : all_settings()) {
    // TOML does not allow 'compile' to be both a value and a table.
    const std::string name(setting.name);
    const bool quoted = name == "compile.in_process";
    text += "\n# " + std::string(setting.meaning) + " (" + setting.variable + ")\n# " +
            (quoted ? '"' + name + '"' : name) + " = " + toml_value(setting.default_value) + "\n";
  }
  return text;
}

// Creates a file. One that exists is not an error and stays as it is.
Result<InitFile> create(const std::string& path, const std::string& text) {
  struct stat status;
  if (lstat(path.c_str(), &status) == 0) return InitFile{path, false};
  if (Status made = make_directories(parent_path(path)); !made) return std::move(made).error();
  if (Status written = write_new_file(path, text); !written) return std::move(written).error();
  return InitFile{path, true};
}

}  // namespace

int init_command(const Arguments& arguments, Console& console) {
  const std::vector<std::string> units = find_units();
  std::vector<InitFile> files;
  const std::string own = user_path("XDG_CONFIG_HOME", ".config", "kiln/config.toml");
  if (own.empty()) console.warn("no configuration file was written, because HOME is not set");
  for (const std::string& path : {std::string("kiln.toml"), own}) {
    if (path.empty()) continue;
    const Result<InitFile> file = create(path, path == own ? config_text() : new_manifest_text(units));
    if (!file) return report(file.error(), console);
    files.push_back(*file);
  }
  if (arguments.json) {
    Json list = Json::array();
    for (const InitFile& file : files) list.push_back({{"path", file.path}, {"written", file.written}});
    console.print(text_of({{"files", std::move(list)}, {"units", units}}));
    return kSuccess;
  }
  for (const InitFile& file : files) {
    console.print(printable(file.path) + (file.written ? ": written" : ": exists, not changed"));
  }
  if (!files.front().written) return kSuccess;
  console.print(units.empty()
                    ? "Add the sources with kernels to kiln.toml, then run 'kiln compile --manifest kiln.toml'."
                    : "Next: 'kiln compile --manifest kiln.toml' compiles " +
                          format_count(units.size(), "unit", "units") + ".");
  return kSuccess;
}

}  // namespace kiln::cli
