// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <kiln/target.hpp>
#include <kiln/unit.hpp>

namespace kiln::test {

using Random = std::mt19937;
using Undo = std::function<void()>;

/// A synthetic GPU project in its own directory: a source, nested headers in several include directories, and inputs
/// that are not files. All of its constants have three digits, so that any edit can keep the size.
class Project {
 public:
  struct HeaderFile {
    std::string directory;  ///< relative to the project: r1/sub
    std::string name;       ///< h3.h
    std::string spelled;    ///< the form in which others include it: <sub/h3.h>
    int constant = 100;
    std::vector<int> children;
    bool guard = false;  ///< true for an include guard, false for #pragma once
    bool names_itself = false;
  };

  /// Writes nothing if the directory already has a project that was created with the same random numbers.
  Project(std::string directory, Random& random);

  Unit unit() const;
  const Target& target() const { return target_; }
  const std::string& directory() const { return directory_; }
  std::string at(const std::string& path) const { return directory_ + "/" + path; }

  // Inputs that are not files.
  std::string name = "program.cu";
  int constant = 100;  ///< of the source
  int scale = 100;     ///< of a macro
  std::string pick = "<pick_a.h>";
  std::vector<std::string> more_options;
  std::vector<std::string> entries{"k"};
  std::vector<Header> memory;
  std::vector<std::string> roots;
  std::string targets_name = "sm_80";
  int compiler = 0;
  std::string working_directory;
  std::map<std::string, std::string> environment;
  bool shadowed_here = false;  ///< a header is in the working directory

  std::vector<HeaderFile> headers;
  std::string text_of(std::size_t header, bool shadow = false) const;
  std::string path_of(std::size_t header) const { return at(headers[header].directory + "/" + headers[header].name); }
  std::string included_as(std::size_t header) const;
  std::string source() const;
  /// Returns everything that files and directories add to the unit. Equal texts mean equal inputs.
  std::string files() const;
  void set_target(const std::string& text);
  /// Returns true if the output contains file paths (`located`) or file times (`timed`).
  bool located() const;
  bool timed() const;

  /// Changes to its working directory and sets its environment.
  void enter() const;
  /// Returns the same project with all its files at another location.
  Project copy_to(const std::string& directory) const;

 private:
  std::string directory_;
  Target target_;
};

/// The way in which a file gets its new content.
enum class Mode { InPlace, ByRename };
void write_file(const std::string& path, const std::string& text, Mode mode = Mode::InPlace);
std::string file_text(const std::string& path);

/// A kind of change. It makes a change and returns a function that reverts it.
struct ChangeKind {
  const char* name;
  Undo (*apply)(Project&, Random&);
  bool settle = true;  ///< false means check at once, within the same tick of the file system's clock
};
const std::vector<ChangeKind>& change_kinds();

}  // namespace kiln::test
