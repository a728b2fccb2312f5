#include "project.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kiln::test {
namespace fs = std::filesystem;

void write_file(const std::string& path, const std::string& text, Manner manner) {
  const std::string target = manner == Manner::ByRename ? path + ".new" : path;
  std::ofstream(target, std::ios::binary | std::ios::trunc) << text;
  if (manner == Manner::ByRename) fs::rename(target, path);
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Project::Project(std::string folder, Random& random) : folder_(std::move(folder)) {
  for (const char* place : {"r0", "r1/sub/deep", "r2/lib", "stash", "here", "there", "nowhere"}) {
    fs::create_directories(at(place));
  }
  fs::create_directory_symlink(at("here"), at("way"));  // another spelling of the working directory
  // {where it lies, how it is included from elsewhere}
  static const std::pair<const char*, const char*> kPlaces[] = {
      {"r1", ""}, {"r1/sub", "sub/"}, {"r1/sub/deep", "sub/deep/"}, {"r2", ""}, {"r2/lib", "lib/"}};
  const std::size_t count = 3 + random() % 6;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [place, prefix] = kPlaces[random() % 5];
    HeaderFile header;
    header.folder = place;
    header.name = "h" + std::to_string(i) + ".h";
    const std::string path = prefix + header.name;
    header.spelt = random() % 2 != 0 ? "<" + path + ">" : "\"" + path + "\"";
    header.constant = static_cast<int>(100 + random() % 900);
    header.guard = random() % 2 != 0;
    header.names_itself = random() % 12 == 0;
    headers.push_back(header);
  }
  // Each is included by the one before it and perhaps by an earlier one: a chain as deep as there are headers.
  for (std::size_t i = 1; i < count; ++i) {
    headers[i - 1].children.push_back(static_cast<int>(i));
    if (i > 1 && random() % 3 == 0) headers[random() % (i - 1)].children.push_back(static_cast<int>(i));
  }
  for (std::size_t i = 0; i < count; ++i) write_file(at(headers[i].folder + "/" + headers[i].name), text_of(i));
  write_file(at("r1/pick_a.h"), "#define PICK 101\n");
  write_file(at("r2/lib/pick_b.h"), "#define PICK 202\n");
  // Two files of one text: whether the compiler reads both depends on whether they are one file.
  const std::string twin =
      "#pragma once\n#ifdef TWIN\n#undef TWIN\n#define TWIN 222\n#else\n#define TWIN 111\n#endif\n";
  write_file(at("r1/twin_a.h"), twin);
  write_file(at("r2/twin_b.h"), twin);
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
    std::string spelt = headers[static_cast<std::size_t>(child)].spelt;
    if (shadow && spelt.front() == '"') spelt = "<" + spelt.substr(1, spelt.size() - 2) + ">";
    text << "#include " << spelt << "\n";
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
  text << "#include \"given.h\"\n#include " << headers[0].spelt << "\n#include <twin_a.h>\n#include \"twin_b.h\"\n"
       << "#include CHOSEN\n"
       << "extern \"C\" __global__ void k(int* p) {\n"
       << "  p[threadIdx.x] = f0(p[threadIdx.x]) + " << constant << " * SCALE + PICK * TWIN + GIVEN;\n";
  for (std::size_t i = 0; i < headers.size(); ++i) {
    if (headers[i].names_itself) text << "  for (const char* c = n" << i << "(); *c; ++c) p[1] += *c * p[2];\n";
  }
  text << "}\ntemplate <int N>\n__global__ void t(int* p) { *p += N * f" << headers.size() - 1 << "(*p); }\n";
  return text.str();
}

Unit Project::unit() const {
  Unit unit = Unit::cuda(name, source());
  unit = unit.option("-DSCALE=" + std::to_string(scale)).option("-DCHOSEN=" + pick).options(more_options);
  for (const std::string& entry : entries) unit = unit.entry(entry);
  for (const std::string& root : roots) unit = unit.include_root(root);
  for (const Header& header : memory) unit = unit.header(header.name, header.content);
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

Project Project::copy_to(const std::string& folder) const {
  fs::copy(folder_, folder, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  Project copy = *this;
  const auto move = [&](std::string& path) {
    if (path.starts_with(folder_)) path = folder + path.substr(folder_.size());
  };
  copy.folder_ = folder;
  for (std::string& root : copy.roots) move(root);
  move(copy.working_directory);
  return copy;
}

}  // namespace kiln::test
