// SPDX-License-Identifier: Apache-2.0
// The kinds of changes that users make between two compiles, each with its undo function.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "project.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

int other_constant(int old, Random& random) {
  const int fresh = static_cast<int>(100 + random() % 899);
  return fresh >= old ? fresh + 1 : fresh;
}

std::size_t any_header(const Project& p, Random& random) { return random() % p.headers.size(); }
Mode any_mode(Random& random) { return random() % 2 != 0 ? Mode::InPlace : Mode::ByRename; }

template <class T>
Undo set(T& value, T to) {
  T old = value;
  value = std::move(to);
  return [&value, old] { value = old; };
}

Undo nothing() {
  return [] {};
}

Undo edit_source(Project& p, Random& random) { return set(p.constant, other_constant(p.constant, random)); }
Undo change_macro(Project& p, Random& random) { return set(p.scale, other_constant(p.scale, random)); }

Undo change_header(Project& p, std::size_t i, Random& random, Mode mode) {
  const std::string path = p.path_of(i);
  const int old = p.headers[i].constant;
  const bool existed = fs::exists(path);
  const std::string old_text = file_text(path);  // may differ from what the project would write, because it may be a
                                                 // link now
  p.headers[i].constant = other_constant(old, random);
  write_file(path, p.text_of(i), mode);
  return [=, &p] {
    p.headers[i].constant = old;
    existed ? write_file(path, old_text, mode) : void(fs::remove(path));
  };
}
Undo edit_header(Project& p, Random& random) {
  return change_header(p, any_header(p, random), random, any_mode(random));
}

// Keeps the size and, if restored, the modification time.
Undo edit_within_a_tick(Project& p, Random& random) {
  const std::size_t i = any_header(p, random);
  struct stat before;
  if (stat(p.path_of(i).c_str(), &before) != 0) return nothing();
  Undo undo = change_header(p, i, random, Mode::InPlace);
  if (random() % 2 != 0) {
    const timespec times[2] = {before.st_atim, before.st_mtim};
    utimensat(AT_FDCWD, p.path_of(i).c_str(), times, 0);
  }
  return undo;
}

// Creates a directory with its parents and returns the topmost one that was missing, or an empty string. The undo
// function removes it too, because a new directory is a change.
std::string make_directories(fs::path directory) {
  std::string made;
  for (fs::path above = directory; !fs::exists(above); above = above.parent_path()) made = above.string();
  fs::create_directories(directory);
  return made;
}

// Writes the text of this header with a different constant to another path where the name would find it.
Undo shadow_at(Project& p, std::size_t i, const std::string& path, Random& random) {
  if (fs::exists(path)) return nothing();
  const int old = p.headers[i].constant;
  p.headers[i].constant = other_constant(old, random);
  const std::string text = p.text_of(i, true);
  p.headers[i].constant = old;
  const std::string made = make_directories(fs::path(path).parent_path());
  write_file(path, text, any_mode(random));
  return [path, made] {
    fs::remove(path);
    if (!made.empty()) fs::remove_all(made);
  };
}
Undo shadow_in_an_earlier_root(Project& p, Random& random) {
  const std::size_t i = any_header(p, random);
  return shadow_at(p, i, p.at("r0/" + p.included_as(i)), random);
}
Undo shadow_in_the_includers_directory(Project& p, Random& random) {
  const std::size_t i = any_header(p, random);
  if (i == 0) return edit_header(p, random);
  return shadow_at(p, i, p.at(p.headers[i - 1].directory + "/" + p.included_as(i)), random);
}
Undo shadow_in_the_working_directory(Project& p, Random& random) {
  const std::size_t i = random() % 3 == 0 ? any_header(p, random) : 0;
  const bool old = p.shadowed_here;
  p.shadowed_here = true;
  Undo undo = shadow_at(p, i, p.working_directory + "/" + p.included_as(i), random);
  return [undo, &p, old] {
    undo();
    p.shadowed_here = old;
  };
}
Undo make_a_missing_root(Project& p, Random& random) {
  const std::size_t i = any_header(p, random);
  Undo undo = shadow_at(p, i, p.at("missing/" + p.included_as(i)), random);
  std::vector<std::string> roots = p.roots;
  std::rotate(roots.rbegin(), roots.rbegin() + 1, roots.rend());
  Undo roots_undo = set(p.roots, roots);
  return [undo, roots_undo, directory = p.at("missing")] {
    undo();
    roots_undo();
    fs::remove_all(directory);
  };
}
Undo remove_header(Project& p, Random& random) {
  const std::string path = p.path_of(any_header(p, random));
  if (!fs::exists(path)) return nothing();
  fs::rename(path, path + ".away");
  return [path] { fs::rename(path + ".away", path); };
}
Undo answer_has_include(Project& p, Random& random) {
  const std::size_t i = any_header(p, random);
  const std::string name = "maybe_" + std::to_string(i) + ".h";
  const std::string places[] = {p.at(p.headers[i].directory + "/" + name), p.at("r0/" + name), p.at("r2/" + name),
                                p.working_directory + "/" + name};
  const std::string path = places[random() % 4];
  if (fs::exists(path)) return nothing();
  write_file(path, "#define MAYBE_" + std::to_string(i) + " " + std::to_string(other_constant(0, random)) + "\n");
  return [path] { fs::remove(path); };
}
Undo directory_by_a_headers_name(Project& p, Random& random) {
  const std::string path = p.at("r0/" + p.included_as(any_header(p, random)));
  if (fs::exists(path)) return nothing();
  const std::string made = make_directories(path);
  return [made] { fs::remove_all(made); };
}

Undo change_option(Project& p, Random& random) {
  static const char* const kOptions[] = {"-use_fast_math", "-maxrregcount=32", "-std=c++14", "-DUNUSED", "-fmad=false"};
  std::vector<std::string> options = p.more_options;
  const std::string option = kOptions[random() % 5];
  const auto found = std::find(options.begin(), options.end(), option);
  found == options.end() ? void(options.push_back(option)) : void(options.erase(found));
  return set(p.more_options, options);
}
Undo line_information(Project& p, Random&) {
  std::vector<std::string> options = p.more_options;
  const auto found = std::find(options.begin(), options.end(), "-lineinfo");
  found == options.end() ? void(options.emplace_back("-lineinfo")) : void(options.erase(found));
  return set(p.more_options, options);
}
Undo change_entries(Project& p, Random& random) {
  static const std::vector<std::string> kSets[] = {{"k"}, {"k", "t<3>"}, {"t<3>", "t<5>"}, {"k", "t<2 + 2>"}};
  return set(p.entries, kSets[random() % 4]);
}
Undo change_name(Project& p, Random& random) { return set(p.name, "program_" + std::to_string(random() % 9) + ".cu"); }
Undo change_target(Project& p, Random& random) {
  static const char* const kTargets[] = {"sm_80", "sm_90", "compute_80", "sm_75"};
  const std::string old = p.targets_name;
  p.set_target(kTargets[random() % 4]);
  return [&p, old] { p.set_target(old); };
}
Undo change_compiler(Project& p, Random&) { return set(p.compiler, 1 - p.compiler); }
Undo change_environment(Project& p, Random& random) {
  static const char* const kFlags[] = {"-DSCALE_AGAIN", "-maxrregcount=24", "-lineinfo", "-use_fast_math"};
  auto environment = p.environment;
  const char* variable = random() % 2 != 0 ? "NVRTC_APPEND_FLAGS" : "NVRTC_PREPEND_FLAGS";
  if (environment.erase(variable) == 0) environment[variable] = kFlags[random() % 4];
  return set(p.environment, environment);
}
Undo change_macro_include(Project& p, Random&) {
  return set(p.pick, std::string(p.pick == "<pick_a.h>" ? "\"lib/pick_b.h\"" : "<pick_a.h>"));
}
Undo change_memory_header(Project& p, Random& random) {
  std::vector<Header> memory = p.memory;
  if (random() % 2 != 0) {
    memory[0].content = "#define GIVEN " + std::to_string(other_constant(0, random)) + "\n";
  } else if (memory.size() == 1) {
    const std::size_t i = any_header(p, random);
    memory.push_back({p.included_as(i), p.text_of(i, true) + "// from memory\n"});
  } else {
    memory.pop_back();
  }
  return set(p.memory, memory);
}
Undo change_roots(Project& p, Random& random) {
  std::vector<std::string> roots = p.roots;
  std::swap(roots[random() % roots.size()], roots[random() % roots.size()]);
  if (random() % 3 == 0) roots.push_back(p.at("r1/sub"));
  return set(p.roots, roots);
}
Undo change_directory(Project& p, Random& random) {
  static const char* const kDirectories[] = {"here", "there", "nowhere", "r1", "way"};
  return set(p.working_directory, p.at(kDirectories[random() % 5]));
}

// The same name now refers to another file through a link.
Undo header_becomes_a_link(Project& p, Random& random) {
  const std::size_t i = any_header(p, random);
  const std::string path = p.path_of(i);
  const std::string stash = p.at("stash/" + p.headers[i].name);
  if (fs::is_symlink(path) || !fs::exists(path) || fs::exists(stash)) return nothing();
  fs::rename(path, path + ".away");
  Undo undo = shadow_at(p, i, stash, random);
  fs::create_symlink(stash, path);
  return [path, undo] {
    fs::remove(path);
    fs::rename(path + ".away", path);
    undo();
  };
}
Undo directory_becomes_a_link(Project& p, Random& random) {
  const std::string path = p.at("r1/sub");
  const std::string stash = p.at("stash/sub");
  if (fs::is_symlink(path) || fs::exists(stash)) return nothing();
  std::error_code rejected;
  fs::rename(path, path + ".away", rejected);
  if (rejected) return nothing();  // overlayfs cannot rename a directory of its lower layer
  fs::copy(path + ".away", stash, fs::copy_options::recursive);
  fs::create_directory_symlink(stash, path);
  Undo undo = nothing();
  for (std::size_t i = 0; i < p.headers.size(); ++i) {
    if (p.headers[i].directory.starts_with("r1/sub") && fs::exists(p.path_of(i))) {
      undo = change_header(p, i, random, Mode::InPlace);
      break;
    }
  }
  return [path, stash, undo] {
    undo();
    fs::remove(path);
    fs::rename(path + ".away", path);
    fs::remove_all(stash);
  };
}
// Two headers with equal text become one file, two files, or two texts.
Undo duplicates(Project& p, Random& random) {
  const std::string a = p.at("r1/duplicate_a.h");
  const std::string b = p.at("r2/duplicate_b.h");
  const std::string text = file_text(a);
  const std::string old = file_text(b);
  const bool was_link = fs::is_symlink(b);
  const bool was_one = fs::equivalent(a, b);
  fs::remove(b);
  switch (random() % 4) {
    case 0: fs::create_symlink(a, b); break;
    case 1: fs::create_hard_link(a, b); break;
    case 2: write_file(b, text); break;
    default:
      write_file(b, text + "#undef DUPLICATE\n#define DUPLICATE " + std::to_string(other_constant(0, random)) + "\n");
  }
  return [=] {
    fs::remove(b);
    if (was_link) {
      fs::create_symlink(a, b);
    } else if (was_one) {
      fs::create_hard_link(a, b);
    } else {
      write_file(b, old);
    }
  };
}

}  // namespace

const std::vector<ChangeKind>& change_kinds() {
  static const std::vector<ChangeKind> kinds{
      {"source", edit_source},
      {"header", edit_header},
      {"header", edit_header},
      {"same-size-same-tick", edit_within_a_tick, false},
      {"shadow-earlier-root", shadow_in_an_earlier_root},
      {"shadow-includer-folder", shadow_in_the_includers_directory},
      {"shadow-working-directory", shadow_in_the_working_directory},
      {"missing-root-appears", make_a_missing_root},
      {"removed", remove_header},
      {"has-include", answer_has_include},
      {"folder-named-like-header", directory_by_a_headers_name},
      {"option", change_option},
      {"lineinfo", line_information},
      {"entry", change_entries},
      {"program-name", change_name},
      {"macro", change_macro},
      {"macro-include", change_macro_include},
      {"target", change_target},
      {"compiler", change_compiler},
      {"environment", change_environment},
      {"memory-header", change_memory_header},
      {"roots", change_roots},
      {"chdir", change_directory},
      {"header-to-link", header_becomes_a_link},
      {"folder-to-link", directory_becomes_a_link},
      {"duplicates", duplicates},
  };
  return kinds;
}

}  // namespace kiln::test
