#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "apps/kiln/arguments.hpp"
#include "apps/kiln/console.hpp"
#include "bundle/bundle.hpp"
#include "session/trust_file.hpp"
#include "trust/keys.hpp"

namespace kiln::cli {

/// A bundle that somebody looks at, and whether it would be believed: looking into one is no reason to.
struct OpenBundle {
  std::string path;
  std::unique_ptr<Bundle> bundle;
  Status believed;
};

/// Opens whatever lies at the path. Only damage is an error; the path is in it.
Result<OpenBundle> open_to_look(const std::string& path, const TrustPolicy& policy);
/// Those of the command line, to look at, with a warning for each that would not be believed here.
Result<std::vector<OpenBundle>> open_given(const Arguments& arguments, Console& console);

/// `acme/vision, epoch 3, signed by 3fa9c2d1e0b74a55`
std::string speaker_text(const std::string& name_space, std::uint64_t epoch, const std::optional<KeyId>& signer);
std::optional<KeyId> signer_of(const BundleHeader& header);

/// What of a bundle is decided when it is written: who speaks, as of when, who signs.
struct Speaker {
  std::string name_space;
  std::uint64_t epoch = 0;
  std::optional<SecretKey> key;

  /// With what the command line says instead.
  static Result<Speaker> of(const Arguments& arguments, std::string name_space, std::uint64_t epoch);
  BundleWriter::Options options() const { return {name_space, epoch}; }
  std::optional<KeyId> signer() const;
};

/// What was written.
struct WrittenBundle {
  std::string path;
  std::uint64_t bytes = 0;
  std::string sha256;
  std::size_t artifacts = 0;
  std::string name_space;
  std::uint64_t epoch = 0;
  std::optional<KeyId> signer;

  /// One line, which says of one that nobody signed what that means.
  std::string text() const;
};

/// Refuses a path that no file can be written to, before anything is compiled for it.
Status check_output(const std::string& path);
/// Writes the bundle, in one step.
Result<WrittenBundle> write_bundle(const BundleWriter& writer, const Speaker& speaker, const std::string& path);

}  // namespace kiln::cli
