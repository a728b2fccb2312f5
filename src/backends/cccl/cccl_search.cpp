// SPDX-License-Identifier: Apache-2.0
// Finds and identifies the CCCL library by reading a few bytes of files, without opening it.
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "backends/cccl/cccl_library.hpp"
#include "backends/cuda/package_directories.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr const char* kLibrary = "libcccl.c.parallel.so";
constexpr const char* kAdvice =
    "pip install cuda-cccl, or set KILN_CCCL to the library or to the directory into which cuda-cccl was installed";

std::string install_known() {
  std::string known;
  for (const CcclRelease& one : cccl_releases()) {
    if (known.find(one.release) == std::string::npos) known += std::string(known.empty() ? "" : ", ") + one.release;
  }
  return "install cuda-cccl " + known + " or a kiln that knows this release";
}

bool read_at(const Fd& file, void* into, std::size_t size, std::uint64_t offset) {
  return pread(file.get(), into, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

// Returns the description of the note of type NT_GNU_BUILD_ID.
std::string build_id_among(const std::string& notes) {
  std::size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    const auto padded = [](std::uint64_t size) { return (size + 3) & ~std::uint64_t{3}; };
    const std::uint64_t name = at + sizeof note;
    const std::uint64_t description = name + padded(note.n_namesz);
    const std::uint64_t next = description + padded(note.n_descsz);
    if (description + note.n_descsz > notes.size()) return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && notes.compare(name, 3, "GNU") == 0) {
      return hex_of(as_bytes(notes).subspan(description, note.n_descsz));
    }
    at = next;
  }
  return {};
}

// Returns the build id that the linker wrote into a library; empty if there is none.
std::string build_id_of(const std::string& path) {
  constexpr std::uint64_t kMaxNotes = 64 << 10;
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Elf64_Ehdr header;
  if (!file || !read_at(file, &header, sizeof header, 0)) return {};
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(Elf64_Phdr)) return {};
  for (unsigned i = 0; i < header.e_phnum && i < 64; ++i) {
    Elf64_Phdr segment;
    if (!read_at(file, &segment, sizeof segment, header.e_phoff + i * sizeof segment)) return {};
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNotes) continue;
    std::string notes(segment.p_filesz, '\0');
    if (!read_at(file, notes.data(), notes.size(), segment.p_offset)) return {};
    if (std::string id = build_id_among(notes); !id.empty()) return id;
  }
  return {};
}

int version_of(const std::string& headers) {
  constexpr std::string_view kDefine = "#define CCCL_VERSION ";
  const auto text = read_file(headers + "/cuda/std/__cccl/version.h");
  if (!text || !*text) return 0;
  const std::string_view view = (*text)->view();
  const std::size_t at = view.find(kDefine);
  int version = 0;
  if (at != std::string_view::npos) {
    std::from_chars(view.data() + at + kDefine.size(), view.data() + view.size(), version);
  }
  return version;
}

// Reads the version and the CUDA major version of a library of an unknown release from the names of the package's
// directories: <site-packages>/cuda_cccl-<version>.dist-info and <site-packages>/cuda/compute/cu<major>.
void describe_unknown(CcclCandidate& candidate) {
  constexpr std::string_view kName = "cuda_cccl-";
  constexpr std::string_view kSuffix = ".dist-info";
  const std::string build = parent_path(parent_path(candidate.path));
  const std::string directory = file_name(build);
  if (directory == "cu12") candidate.cuda = 12;
  if (directory == "cu13") candidate.cuda = 13;
  const std::string site = parent_path(parent_path(parent_path(build)));
  std::vector<std::string> versions;
  for (const std::string& name : list_directory(AT_FDCWD, site.c_str())) {
    if (!name.starts_with(kName) || !name.ends_with(kSuffix) || name.size() > 64) continue;
    versions.push_back(name.substr(kName.size(), name.size() - kName.size() - kSuffix.size()));
  }
  // An incomplete update leaves several, and nothing states which one the library is of.
  if (versions.size() == 1) candidate.version = std::move(versions.front());
}

CcclCandidate candidate_at(const std::string& path, const char* found_by) {
  CcclCandidate candidate;
  candidate.path = path;
  candidate.found_via = found_by;
  candidate.build_id = build_id_of(path);
  // <site-packages>/cuda/compute/cu13/cccl/<library> has its headers in <site-packages>/cuda/cccl/headers/include.
  const std::string headers = parent_path(parent_path(parent_path(parent_path(path)))) + "/cccl/headers/include";
  if (is_directory(headers)) candidate.headers = headers;
  candidate.headers_version = version_of(headers);
  for (const CcclRelease& release : cccl_releases()) {
    if (candidate.build_id == release.build_id) candidate.release = &release;
  }
  if (candidate.release != nullptr) {
    candidate.parameters = candidate.release;
    candidate.version = candidate.release->release;
    candidate.cuda = candidate.release->cuda;
  } else {
    candidate.parameters = cccl_parameters_for(candidate.headers_version);
    describe_unknown(candidate);
  }
  return candidate;
}

void add_site(std::vector<CcclCandidate>& all, const std::string& site, const char* found_by) {
  for (const char* cuda : {"cu13", "cu12"}) {
    const std::string path = site + "/cuda/compute/" + cuda + "/cccl/" + kLibrary;
    if (stamp_of(path.c_str())) all.push_back(candidate_at(path, found_by));
  }
}

}  // namespace

std::string CcclCandidate::unusable_reason() const {
  if (headers.empty())
    return path + " has no headers next to it; install the complete cuda-cccl package (" + kAdvice + ")";
  if (parameters == nullptr) {
    return path + " is of an unsupported release: " + version + " (CCCL " + std::to_string(headers_version) +
           ", build id " + (build_id.empty() ? "none" : build_id) +
           ") is older than the releases that can serialize; " + install_known();
  }
  if (cuda == 0) {
    return path +
           " is of an unknown release and is not in a directory cu12 or cu13, which would state its CUDA version; " +
           install_known();
  }
  if (release != nullptr && headers_version != release->headers) {
    return "the headers in " + headers + " are of CCCL " + std::to_string(headers_version) + ", the library needs " +
           std::to_string(release->headers) + "; install cuda-cccl again";
  }
  return {};
}

std::string CcclCandidate::uncallable_reason() const {
  if (release != nullptr) return {};
  return "the algorithms of " + path + " are not called: it is of a release that this version of kiln does not know (" +
         version + ", build id " + (build_id.empty() ? "none" : build_id) + "); use the program's own path, or " +
         install_known();
}

std::vector<CcclCandidate> cccl_candidates(const std::string& explicit_path) {
  std::vector<CcclCandidate> all;
  if (!explicit_path.empty()) {
    if (is_directory(explicit_path)) {
      add_site(all, explicit_path, "explicit");
    } else if (stamp_of(explicit_path.c_str())) {
      all.push_back(candidate_at(explicit_path, "explicit"));
    }
    return all;
  }
  for (const std::string& path : mapped_libraries()) {
    if (path.ends_with(std::string("/") + kLibrary)) all.push_back(candidate_at(path, "mapped"));
  }
  const PackageDirectories packages = PackageDirectories::of_this_process();
  if (!packages.own.empty()) add_site(all, packages.own, "package");
  for (const PackageDirectory& each : packages.installed) add_site(all, each.path, each.found_by);
  return all;
}

Result<CcclCandidate> choose_cccl(const std::string& explicit_path, int cuda) {
  std::vector<CcclCandidate> all = cccl_candidates(explicit_path);
  if (all.empty() && !explicit_path.empty()) {
    return make_error(Code::Unavailable, "the CCCL library was not found at " + explicit_path +
                                             "; correct or remove the setting cccl (KILN_CCCL)");
  }
  if (all.empty()) return make_error(Code::Unavailable, std::string("the CCCL library was not found; ") + kAdvice);
  const auto rank = [&](const CcclCandidate& one) {
    const bool fits = cuda == 0 || one.cuda == cuda;
    return (fits ? 4 : 0) + (one.unusable_reason().empty() ? 2 : 0) + (one.release != nullptr ? 1 : 0);
  };
  // Returns the first one of the highest rank.
  return std::move(*std::max_element(
      all.begin(), all.end(), [&](const CcclCandidate& a, const CcclCandidate& b) { return rank(a) < rank(b); }));
}

}  // namespace kiln
