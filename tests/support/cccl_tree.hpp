#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/files.hpp"
#include "vendor/cccl_library.hpp"

namespace kiln::test {

/// A folder that looks as if cuda-cccl had been installed into it, of which a test may change what it likes: the
/// library is a copy, the headers are a copy or a link to the package's.
class CcclTree {
 public:
  enum class Headers { Linked, Copied };
  CcclTree(const std::string& package, const std::string& site, Headers headers) : site_(site) {
    namespace fs = std::filesystem;
    fs::create_directories(site + kFolder);
    fs::copy(package + kFolder + kName, site + kFolder + kName);
    fs::create_directories(site + "/cuda/cccl");
    if (headers == Headers::Linked) fs::create_symlink(package + kHeaders, site + kHeaders);
    if (headers == Headers::Copied) fs::copy(package + kHeaders, site + kHeaders, fs::copy_options::recursive);
  }

  std::string header(const std::string& name) const { return site_ + kHeaders + "/include/" + name; }

  /// Writes another id into the library than its linker did.
  void change_build_id() const {
    const std::string path = site_ + kFolder + kName;
    const std::string id = cccl_candidates(path).at(0).build_id;
    std::string bytes;
    for (std::size_t i = 0; i + 1 < id.size(); i += 2) {
      bytes += static_cast<char>(std::stoi(id.substr(i, 2), nullptr, 16));
    }
    std::string library = slurp(path);
    const std::size_t at = library.find(bytes);
    ASSERT_NE(at, std::string::npos);
    library[at] = static_cast<char>(library[at] ^ 1);
    spit(path, library);
  }

 private:
  static constexpr const char* kFolder = "/cuda/compute/cu13/cccl";
  static constexpr const char* kName = "/libcccl.c.parallel.so";
  static constexpr const char* kHeaders = "/cuda/cccl/headers";

  const std::string site_;
};

}  // namespace kiln::test
