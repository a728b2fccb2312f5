#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/key.hpp>
#include <kiln/result.hpp>
#include <kiln/target.hpp>

namespace kiln {

/// What a bundle says about itself, for `ls` and `explain`: nothing is served by it. JSON in the file. A value.
struct BundleDescription {
  struct File {
    std::string place;  ///< "root 0", "working directory", …: never an absolute path
    std::string name;
    std::string state;  ///< read, absent, present, sealed
    std::string digest;
    friend bool operator==(const File&, const File&) = default;
  };
  struct Artifact {
    std::string unit;  ///< its name
    std::string kind;
    UnitKey unit_key;
    Target target;
    Key key;
    RequestKey request;
    std::string compiler;
    std::string version;
    Digest compiler_digest{};
    std::uint64_t bytes = 0;  ///< as a driver gets them
    std::vector<Entry> entries;
    std::vector<File> files;  ///< what the compile read
    friend bool operator==(const Artifact&, const Artifact&) = default;
  };
  std::string generator;            ///< kiln 0.1.0
  std::vector<Artifact> artifacts;  ///< by unit, kind, target and key

  std::string encode() const;
  static Result<BundleDescription> parse(std::string_view text);
};

}  // namespace kiln
