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

/// A made-up GPU project in a folder of its own: a source, headers nested several deep in several include folders, and
/// what is given besides files. Its constants all have three digits, so that any edit can keep the size.
class Project {
 public:
  struct HeaderFile {
    std::string folder;  ///< below the project: r1/sub
    std::string name;    ///< h3.h
    std::string spelt;   ///< how others include it: <sub/h3.h>
    int constant = 100;
    std::vector<int> children;
    bool guard = false;  ///< an include guard, else #pragma once
    bool names_itself = false;
  };

  Project(std::string folder, Random& random);

  Unit unit() const;
  const Target& target() const { return target_; }
  const std::string& folder() const { return folder_; }
  std::string at(const std::string& path) const { return folder_ + "/" + path; }

  // What is not in files.
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
  bool shadowed_here = false;  ///< a header lies in the working directory

  std::vector<HeaderFile> headers;
  std::string text_of(std::size_t header, bool shadow = false) const;
  std::string source() const;
  void set_target(const std::string& text);
  /// Whether the output has paths of files or their times in it.
  bool located() const;
  bool timed() const;

  /// Goes to its working directory and sets its environment.
  void enter() const;
  /// The same project with all its files at another place.
  Project copy_to(const std::string& folder) const;

 private:
  std::string folder_;
  Target target_;
};

/// How a file gets its new content.
enum class Manner { InPlace, ByRename };
void write_file(const std::string& path, const std::string& text, Manner manner = Manner::InPlace);
std::string file_text(const std::string& path);

/// A kind of change: it changes something, and returns what takes the change back.
struct ChangeKind {
  const char* name;
  Undo (*apply)(Project&, Random&);
  bool settle = true;  ///< false: look at once, within the same tick of the file system's clock
};
const std::vector<ChangeKind>& change_kinds();

}  // namespace kiln::test
