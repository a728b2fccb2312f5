// SPDX-License-Identifier: Apache-2.0
#include "project.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kiln::test {
namespace fs = std::filesystem;

void write_file(const std::string& path, const std::string& text, Mode mode) {
  const std::string target = mode == Mode::ByRename ? path + ".new" : path;
  std::ofstream(target, std::ios::binary | std::ios::trunc) << text;
  if (mode == Mode::ByRename) fs::rename(target, path);
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

namespace {

// Keeps an existing project that was created with the same seed.
void write_new(const std::string& path, const std::string& text) {
  if (!fs::exists(path)) write_file(path, text);
}

}  // namespace

Project::Project(std::string directory, Random& random) : directory_(std::move(directory)) {
  for (const char* place : {"r0", "r1/sub/deep", "r2/lib", "stash", "here", "there", "nowhere"}) {
    fs::create_directories(at(place));
  }
  // Another path to the working directory.
  if (!fs::exists(at("way"))) fs::create_directory_symlink("here", at("way"));
  // {location, prefix for an include from elsewhere}
  static const std::pair<const char*, const char*> kPlaces[] = {
      {"r1", ""}, {"r1/sub", "sub/"}, {"r1/sub/deep", "sub/deep/"}, {"r2", ""}, {"r2/lib", "lib/"}};
  const std::size_t count = 3 + random() % 6;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [place, prefix] = kPlaces[random() % 5];
    HeaderFile header;
    header.directory = place;
    header.name = "h" + std::to_string(i) + ".h";
    const std::string path = prefix + header.name;
    header.spelled = random() % 2 != 0 ? "<" + path + ">" : "\"" + path + "\"";
    header.constant = static_cast<int>(100 + random() % 900);
    header.guard = random() % 2 != 0;
    header.names_itself = random() % 12 == 0;
    headers.push_back(header);
  }
  // Each is included by the one before it and possibly by an earlier one, so the chain is as deep as the number of
  // headers.
  for (std::size_t i = 1; i < count; ++i) {
    headers[i - 1].children.push_back(static_cast<int>(i));
    if (i > 1 && random() % 3 == 0) headers[random() % (i - 1)].children.push_back(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < count; ++i) write_new(path_of(i), text_of(i));
  write_new(at("r1/pick_a.h"), "#define PICK 101\n");
  write_new(at("r2/lib/pick_b.h"), "#define PICK 202\n");
  // Two files with equal text: the compiler reads both only if they are different files.
  const std::string duplicate =
      "#pragma once\n#ifdef DUPLICATE\n#undef DUPLICATE\n#define DUPLICATE 222\n#else\n#define DUPLICATE 111\n#endif\n";
  write_new(at("r1/duplicate_a.h"), duplicate);
  write_new(at("r2/duplicate_b.h"), duplicate);
  memory.push_back({"given.h", "#define GIVEN 100\n"});
  roots = {at("r0"), at("r1"), random() % 3 == 0 ? "../r2" : at("r2"), at("missing")};
  if (random() % 4 == 0) roots.insert(roots.begin() + 1, at("r1/sub"));
  working_directory = at("here");
  set_target(random() % 2 != 0 ? "sm_80" : "compute_80");
}

std::string Project::text_of(std::size_t index, bool shadow) const {
  const HeaderFile& header = headers[index];
  const std::string i = std::to_string(index);
  std::ostringstream text;
  text << (header.guard ? "#ifndef GUARD_" + i + "\n#define GUARD_" + i + "\n" : std::string("#pragma once\n"));
  for (const int child : header.children) {
    std::string spelled = headers[static_cast<std::size_t>(child)].spelled;
    if (shadow && spelled.front() == '"') spelled = "<" + spelled.substr(1, spelled.size() - 2) + ">";
    text << "#include " << spelled << "\n";
  }
  text << "#if __has_include(\"maybe_" << i << ".h\")\n#include \"maybe_" << i << ".h\"\n#else\n#define MAYBE_" << i
       << " 0\n#endif\n";
  text << "static __device__ __forceinline__ int f" << i << "(int x) { return x * " << header.constant << " + MAYBE_"
       << i;
  for (const int child : header.children) text << " + f" << child << "(x)";
  text << "; }\n";
  if (header.names_itself)
    text << "static __device__ __forceinline__ const char* n" << i << "() { return __FILE__; }\n";
  if (header.guard) text << "#endif\n";
  return text.str();
}

std::string Project::source() const {
  std::ostringstream text;
  text << "#include \"given.h\"\n#include " << headers[0].spelled
       << "\n#include <duplicate_a.h>\n#include \"duplicate_b.h\"\n"
       << "#include CHOSEN\n"
       << "extern \"C\" __global__ void k(int* p) {\n"
       << "  p[threadIdx.x] = f0(p[threadIdx.x]) + " << constant << " * SCALE + PICK * DUPLICATE + GIVEN;\n";
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (headers[i].names_itself) text << "  for (const char* c = n" << i << "(); *c; ++c) p[1] += *c * p[2];\n";
  }
  text << "}\ntemplate <int N>\n__global__ void t(int* p) { *p += N * f" << headers.size() - 1 << "(*p); }\n";
  return text.str();
}

Unit Project::unit() const {
  Unit unit = Unit::cuda(name, source());
  unit =
      unit.with_option("-DSCALE=" + std::to_string(scale)).with_option("-DCHOSEN=" + pick).with_options(more_options);
  for (const std::string& entry : entries) unit = unit.with_entry(entry);
  for (const std::string& root : roots) unit = unit.with_include_root(root);
  for (const Header& header : memory) unit = unit.with_header(header.name, header.content);
  return unit;
}

void Project::set_target(const std::string& text) {
  targets_name = text;
  target_ = Target::parse(text).value();
}

bool Project::timed() const {
  const auto debug = [](const std::string& text) { return text.find("lineinfo") != std::string::npos; };
  return std::any_of(more_options.begin(), more_options.end(), debug) ||
         std::any_of(environment.begin(), environment.end(), [&](const auto& v) { return debug(v.second); });
}

bool Project::located() const {
  return timed() || std::any_of(headers.begin(), headers.end(), [](const HeaderFile& h) { return h.names_itself; });
}

void Project::enter() const {
  if (chdir(working_directory.c_str()) != 0) abort();
  setenv("PWD", working_directory.c_str(), 1);
  for (const char* variable : {"NVRTC_APPEND_FLAGS", "NVRTC_PREPEND_FLAGS"}) {
    const auto value = environment.find(variable);
    if (value == environment.end()) {
      unsetenv(variable);
    } else {
      setenv(variable, value->second.c_str(), 1);
    }
  }
}

std::string Project::included_as(std::size_t header) const {
  const std::string& spelled = headers[header].spelled;
  return spelled.substr(1, spelled.size() - 2);
}

// Two names of one file differ from two files with equal text.
std::string Project::files() const {
  std::map<std::string, std::string> lines;
  std::map<ino_t, std::string> first_names;
  for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
    const std::string path = entry.path().string();
    struct stat status;
    if (lstat(path.c_str(), &status) != 0) continue;
    std::string& line = lines[path];
    if (S_ISLNK(status.st_mode)) {
      line = "link " + fs::read_symlink(path).string();
    } else if (S_ISREG(status.st_mode)) {
      const std::string& first = first_names.emplace(status.st_ino, path).first->second;
      line = first == path ? "file " + file_text(path) : "one with " + first;
    }
  }
  std::string all = working_directory;
  for (const std::string& root : roots) all += '\n' + root;
  for (const auto& [path, line] : lines) all += '\n' + path + ' ' + line;
  return all;
}

Project Project::copy_to(const std::string& directory) const {
  fs::copy(directory_, directory, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  Project copy = *this;
  const auto move = [&](std::string& path) {
    if (path.starts_with(directory_)) path = directory + path.substr(directory_.size());
  };
  copy.directory_ = directory;
  for (std::string& root : copy.roots) move(root);
  move(copy.working_directory);
  return copy;
}

}  // namespace kiln::test
