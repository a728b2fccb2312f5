// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/linked_libraries.hpp"

#include <openssl/opensslv.h>
#include <sodium/version.h>
#include <toml++/impl/version.h>
#include <xxhash.h>
#include <zstd.h>

#include <CLI/Version.hpp>
#include <nlohmann/json.hpp>
#ifdef KILN_HAS_HIREDIS
#include <hiredis/hiredis.h>
#endif

namespace kiln::cli {
namespace {

std::string dotted(int major, int minor, int patch) {
  return std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(patch);
}

}  // namespace

std::vector<LinkedLibrary> linked_libraries() {
  std::vector<LinkedLibrary> all = {
      {"libcrypto", OPENSSL_VERSION_STR},
      {"libsodium", SODIUM_VERSION_STRING},
      {"zstd", ZSTD_VERSION_STRING},
      {"xxHash", dotted(XXH_VERSION_MAJOR, XXH_VERSION_MINOR, XXH_VERSION_RELEASE)},
      {"toml++", dotted(TOML_LIB_MAJOR, TOML_LIB_MINOR, TOML_LIB_PATCH)},
      {"nlohmann-json", dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
      {"CLI11", CLI11_VERSION},
  };
#ifdef KILN_HAS_HIREDIS
  all.push_back({"hiredis", dotted(HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH)});
#endif
  return all;
}

}  // namespace kiln::cli
