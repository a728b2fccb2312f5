#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/files.hpp"
#include "support/get_process.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {

/// In a child that is about to become another program: nothing is left in these folders, for it and for whatever it
/// starts. Only root can.
inline bool hide(const std::vector<std::string>& folders) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  for (const std::string& folder : folders) {
    if (mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=64k,mode=0755") != 0) return false;
  }
  return true;
}

/// Those of the folders that are there, by their real names: hiding a link would leave what it leads to.
inline std::vector<std::string> real_folders(const std::vector<std::string>& folders) {
  std::vector<std::string> real;
  std::error_code missing;
  for (const std::string& folder : folders) {
    const auto path = std::filesystem::canonical(folder, missing);
    if (!missing && std::filesystem::is_directory(path)) real.push_back(path.string());
  }
  return real;
}

/// Every folder of this machine that has an NVRTC or CUDA's headers, as far as tests know of them: the toolkit's,
/// those that a toolkit's packages write to, and the packages of `<source tree>/.venv`.
inline std::vector<std::string> compiler_folders(const std::string& source_tree) {
  return real_folders({toolkit_root(), "/usr/local/include", source_tree + "/.venv"});
}
inline std::vector<std::string> header_folders(const std::string& source_tree) {
  std::vector<std::string> folders = {toolkit_root() + "/include", "/usr/local/include"};
  std::error_code none;
  for (const auto& python : std::filesystem::directory_iterator(source_tree + "/.venv/lib", none)) {
    folders.push_back(python.path().string() + "/site-packages/cuda");
  }
  return real_folders(folders);
}

/// The project's units on geometries, or some of them, in a folder as an author has them and in another as a program
/// has that only asks for them: there the headers are missing. The real kiln program builds bundles of the first, and
/// KILN_WORKLOAD_MAIN gets what the second lists.
class Workload {
 public:
  /// All units and architectures of kernels/geometry where none are named.
  explicit Workload(const std::vector<std::string>& units = {}, const std::string& architectures = {}) {
    namespace fs = std::filesystem;
    for (const std::string& folder : {author(), program(), path("tmp"), path("run")}) fs::create_directory(folder);
    fs::permissions(path("run"), fs::perms::owner_all);
    for (const auto& file : fs::directory_iterator(std::string(KILN_SOURCE_DIR) + "/kernels/geometry")) {
      fs::copy_file(file.path(), author() + "/" + file.path().filename().string());
      if (file.path().extension() == ".cu") {
        fs::copy_file(file.path(), program() + "/" + file.path().filename().string());
      }
    }
    if (!units.empty()) spit(author() + "/kiln.toml", chosen(slurp(author() + "/kiln.toml"), units, architectures));
    fs::copy_file(author() + "/kiln.toml", program() + "/kiln.toml");
  }

  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string author() const { return path("author"); }
  std::string program() const { return path("program"); }

  /// Starts a program with no KILN_ variable but those given, and one cache per name.
  GetProcess start(std::vector<std::string> command, std::map<std::string, std::string> environment,
                   const std::string& cache, const std::function<bool()>& prepare = {},
                   const std::vector<std::string>& before = {}) {
    environment.emplace("KILN_CACHE_DIR", path(cache));
    environment.emplace("HOME", path("tmp"));
    environment.emplace("TMPDIR", path("tmp"));
    environment.emplace("XDG_RUNTIME_DIR", path("run"));
    return GetProcess({std::move(command), std::move(environment), before, prepare},
                      path("out-" + std::to_string(++outputs_)));
  }
  GetProcess kiln(std::vector<std::string> arguments, const std::string& cache) {
    arguments.insert(arguments.begin(), KILN_PROGRAM);
    return start(std::move(arguments), {}, cache);
  }
  /// The program that asks, which must compile nothing. `what` are targets, or "load".
  GetProcess ask(const std::string& what, std::map<std::string, std::string> environment, const std::string& cache,
                 const std::function<bool()>& prepare = {}, const std::vector<std::string>& before = {}) {
    environment.emplace("KILN_COMPILE", "never");
    return start({KILN_WORKLOAD_MAIN, program() + "/kiln.toml", what}, std::move(environment), cache, prepare, before);
  }

  /// Makes a key, and a policy that believes it; what bundles need that are to be believed.
  std::string make_key() {
    GetProcess made = kiln({"key", "generate", "-o", path("key")}, "none");
    if (made.exit_code() != 0) return made.output();
    const std::string said = made.output();
    const std::size_t at = said.find("kiln-public-");
    if (at == std::string::npos) return said;
    const std::string key = said.substr(at, said.find_first_of(" \n\"", at) - at);
    spit(path("trust.toml"), "[[key]]\npublic = \"" + key + "\"\nnamespaces = [\"*\"]\n");
    std::filesystem::permissions(path("trust.toml"), std::filesystem::perms(0600));
    return {};
  }
  /// What a program needs to be served by a bundle.
  std::map<std::string, std::string> served_by(const std::string& bundle) const {
    return {{"KILN_BUNDLES", path(bundle)}, {"KILN_TRUST", path("trust.toml")}};
  }

 private:
  // Of a kiln.toml that has one key a line and one empty line before each unit.
  static std::string chosen(const std::string& toml, const std::vector<std::string>& units,
                            const std::string& architectures) {
    std::string kept = "architectures = [" + architectures + "]\n";
    for (const std::string& unit : units) {
      const std::size_t source = toml.find("source = \"" + unit + "\"");
      if (source == std::string::npos) return "there is no unit " + unit;
      kept += "\n[[unit]]\n" + toml.substr(source, std::min(toml.find("\n\n", source), toml.size()) - source) + "\n";
    }
    return kept;
  }

  TemporaryDirectory folder_;
  int outputs_ = 0;
};

/// Of a process's lines: those that begin so and have this in them.
inline std::vector<std::string> lines_with(const GetProcess& process, const std::string& beginning,
                                           const std::string& part = {}) {
  std::vector<std::string> found;
  std::istringstream lines(process.output());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(beginning) && line.find(part) != std::string::npos) found.push_back(line);
  }
  return found;
}

}  // namespace kiln::test
