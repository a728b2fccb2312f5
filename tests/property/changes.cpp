// The kinds of changes that people make between two compiles, each with what takes it back.
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
std::string path_of(const Project& p, std::size_t i) { return p.at(p.headers[i].folder + "/" + p.headers[i].name); }
Manner any_manner(Random& random) { return random() % 2 != 0 ? Manner::InPlace : Manner::ByRename; }

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

Undo change_header(Project& p, std::size_t i, Random& random, Manner manner) {
  const std::string path = path_of(p, i);
  const int old = p.headers[i].constant;
  p.headers[i].constant = other_constant(old, random);
  write_file(path, p.text_of(i), manner);
  return [&p, i, old, path, manner] {
    p.headers[i].constant = old;
    write_file(path, p.text_of(i), manner);
  };
}
Undo edit_header(Project& p, Random& random) {
  return change_header(p, any_header(p, random), random, any_manner(random));
}

// The size stays, and so does, where it is restored, the modification time.
Undo edit_within_a_tick(Project& p, Random& random) {
  const std::size_t i = any_header(p, random);
  struct stat before;
  if (stat(path_of(p, i).c_str(), &before) != 0) return nothing();
  Undo undo = change_header(p, i, random, Manner::InPlace);
  if (random() % 2 != 0) {
    const timespec times[2] = {before.st_atim, before.st_mtim};
    utimensat(AT_FDCWD, path_of(p, i).c_str(), times, 0);
  }
  return undo;
}

// The topmost folder that it had to make; empty where none was missing. Going back removes that too: a folder where
// none was is a change.
std::string make_folders(fs::path folder) {
  std::string made;
  for (fs::path above = folder; !fs::exists(above); above = above.parent_path()) made = above.string();
  fs::create_directories(folder);
  return made;
}

// The text that others would include by this header's name, with another constant, somewhere else.
Undo shadow_at(Project& p, std::size_t i, const std::string& path, Random& random) {
  if (fs::exists(path)) return nothing();
  const int old = p.headers[i].constant;
  p.headers[i].constant = other_constant(old, random);
  const std::string text = p.text_of(i, true);
  p.headers[i].constant = old;
  const std::string made = make_folders(fs::path(path).parent_path());
  write_file(path, text, any_manner(random));
  return [path, made] {
    fs::remove(path);
    if (!made.empty()) fs::remove_all(made);
  };
}
std::string included_as(const Project& p, std::size_t i) {
  const std::string& spelt = p.headers[i].spelt;
  return spelt.substr(1, spelt.size() - 2);
}
Undo shadow_in_an_earlier_root(Project& p, Random& random) {
  const std::size_t i = any_header(p, random);
  return shadow_at(p, i, p.at("r0/" + included_as(p, i)), random);
}
Undo shadow_in_the_includers_folder(Project& p, Random& random) {
  const std::size_t i = any_header(p, random);
  if (i == 0) return edit_header(p, random);
  return shadow_at(p, i, p.at(p.headers[i - 1].folder + "/" + included_as(p, i)), random);
}
Undo shadow_in_the_working_directory(Project& p, Random& random) {
  const std::size_t i = random() % 3 == 0 ? any_header(p, random) : 0;
  const bool old = p.shadowed_here;
  p.shadowed_here = true;
  Undo undo = shadow_at(p, i, p.working_directory + "/" + included_as(p, i), random);
  return [undo, &p, old] {
    undo();
    p.shadowed_here = old;
  };
}
Undo make_a_missing_root(Project& p, Random& random) {
  const std::size_t i = any_header(p, random);
  Undo undo = shadow_at(p, i, p.at("missing/" + included_as(p, i)), random);
  std::vector<std::string> roots = p.roots;
  std::rotate(roots.rbegin(), roots.rbegin() + 1, roots.rend());
  Undo roots_undo = set(p.roots, roots);
  return [undo, roots_undo, folder = p.at("missing")] {
    undo();
    roots_undo();
    fs::remove_all(folder);
  };
}
Undo remove_header(Project& p, Random& random) {
  const std::string path = path_of(p, any_header(p, random));
  if (!fs::exists(path)) return nothing();
  fs::rename(path, path + ".away");
  return [path] { fs::rename(path + ".away", path); };
}
Undo answer_has_include(Project& p, Random& random) {
  const std::size_t i = any_header(p, random);
  const std::string name = "maybe_" + std::to_string(i) + ".h";
  const std::string places[] = {p.at(p.headers[i].folder + "/" + name), p.at("r0/" + name), p.at("r2/" + name),
                                p.working_directory + "/" + name};
  const std::string path = places[random() % 4];
  if (fs::exists(path)) return nothing();
  write_file(path, "#define MAYBE_" + std::to_string(i) + " " + std::to_string(other_constant(0, random)) + "\n");
  return [path] { fs::remove(path); };
}
Undo folder_by_a_headers_name(Project& p, Random& random) {
  const std::string path = p.at("r0/" + included_as(p, any_header(p, random)));
  if (fs::exists(path)) return nothing();
  const std::string made = make_folders(path);
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
    memory.push_back({included_as(p, i), p.text_of(i, true) + "// from memory\n"});
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
  static const char* const kFolders[] = {"here", "there", "nowhere", "r1", "way"};
  return set(p.working_directory, p.at(kFolders[random() % 5]));
}

// The same name, by way of a link, now means another file.
Undo header_becomes_a_link(Project& p, Random& random) {
  const std::size_t i = any_header(p, random);
  const std::string path = path_of(p, i);
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
Undo folder_becomes_a_link(Project& p, Random& random) {
  const std::string path = p.at("r1/sub");
  const std::string stash = p.at("stash/sub");
  if (fs::is_symlink(path) || fs::exists(stash)) return nothing();
  fs::rename(path, path + ".away");
  fs::copy(path + ".away", stash, fs::copy_options::recursive);
  fs::create_directory_symlink(stash, path);
  Undo undo = nothing();
  for (std::size_t i = 0; i < p.headers.size(); ++i) {
    if (p.headers[i].folder.starts_with("r1/sub") && fs::exists(path_of(p, i))) {
      undo = change_header(p, i, random, Manner::InPlace);
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
// Two headers of one text are one file, two files, or two texts.
Undo twins(Project& p, Random& random) {
  const std::string a = p.at("r1/twin_a.h");
  const std::string b = p.at("r2/twin_b.h");
  const std::string text = file_text(a);
  const std::string old = file_text(b);
  const bool was_link = fs::is_symlink(b);
  const bool was_one = fs::equivalent(a, b);
  fs::remove(b);
  switch (random() % 4) {
    case 0: fs::create_symlink(a, b); break;
    case 1: fs::create_hard_link(a, b); break;
    case 2: write_file(b, text); break;
    default: write_file(b, text + "#undef TWIN\n#define TWIN " + std::to_string(other_constant(0, random)) + "\n");
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
      {"shadow-includer-folder", shadow_in_the_includers_folder},
      {"shadow-working-directory", shadow_in_the_working_directory},
      {"missing-root-appears", make_a_missing_root},
      {"removed", remove_header},
      {"has-include", answer_has_include},
      {"folder-named-like-header", folder_by_a_headers_name},
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
      {"folder-to-link", folder_becomes_a_link},
      {"twins", twins},
  };
  return kinds;
}

}  // namespace kiln::test
