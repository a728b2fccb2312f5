// SPDX-License-Identifier: Apache-2.0
// The provenance of a bundle, which `bundle create` writes and `bundle verify` shows: builder, source and compilers.
#include "apps/kiln/bundle/bundle_provenance.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/process/environment.hpp"

namespace kiln::cli {
namespace {

std::string variable(const char* name) { return environment_variable(name).value_or(""); }

// Returns the builder and the source from the variables of GitHub Actions or GitLab CI. Other CI systems use options.
Result<ProvenanceSource> source_in_ci() {
  ProvenanceSource from;
  if (!variable("GITHUB_ACTIONS").empty()) {
    const std::string server = variable("GITHUB_SERVER_URL");
    from.builder = server + '/' + variable("GITHUB_WORKFLOW_REF");
    from.source = "git+" + server + '/' + variable("GITHUB_REPOSITORY");
    from.commit = variable("GITHUB_SHA");
    return from;
  }
  if (!variable("GITLAB_CI").empty()) {
    from.builder = variable("CI_PROJECT_URL") + "/-/runners/" + variable("CI_RUNNER_ID");
    from.source = "git+" + variable("CI_PROJECT_URL");
    from.commit = variable("CI_COMMIT_SHA");
    return from;
  }
  return make_error(Code::InvalidArgument,
                    "--provenance ci: neither GITHUB_ACTIONS nor GITLAB_CI is set; give "
                    "--builder-id, --source-uri and --source-commit");
}

Result<ProvenanceSource> source_in_file(const std::string& path) {
  if (const std::optional<FileStamp> stamp = stamp_of(path.c_str()); stamp && stamp->size > kMaxProvenance) {
    return make_error(Code::InvalidArgument, path + ": the provenance is larger than 1 MiB");
  }
  const Result<std::optional<Bytes>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  if (!*bytes) return make_error(Code::Io, "file not found: " + path);
  const Result<Provenance> checked = Provenance::parse((*bytes)->view());
  if (!checked) return make_error(Code::InvalidArgument, path + ": the provenance " + checked.error().message);
  ProvenanceSource from;
  from.statement = std::string((*bytes)->view());
  return from;
}

}  // namespace

Result<std::optional<ProvenanceSource>> given_provenance(const Arguments& arguments) {
  const bool facts = !arguments.builder_id.empty() || !arguments.source_uri.empty() || !arguments.source_commit.empty();
  if (!facts && arguments.provenance.empty()) return std::optional<ProvenanceSource>();
  const bool in_ci = arguments.provenance == "ci";
  if (!arguments.provenance.empty() && !in_ci) {
    if (facts) {
      return make_error(
          Code::InvalidArgument,
          "--provenance FILE already states the builder and the source; remove --builder-id, --source-uri "
          "and --source-commit");
    }
    Result<ProvenanceSource> from = source_in_file(arguments.provenance);
    if (!from) return from.error();
    return std::optional(std::move(*from));
  }
  Result<ProvenanceSource> from = in_ci ? source_in_ci() : ProvenanceSource();
  if (!from) return from.error();
  if (!arguments.builder_id.empty()) from->builder = arguments.builder_id;
  if (!arguments.source_uri.empty()) from->source = arguments.source_uri;
  if (!arguments.source_commit.empty()) from->commit = arguments.source_commit;
  if (from->builder.empty()) {
    return make_error(Code::InvalidArgument, "a provenance statement needs a builder; give --builder-id");
  }
  return std::optional(std::move(*from));
}

std::string provenance_text(const VerifiedBundle& verified) {
  const Provenance& provenance = *verified.provenance;
  const OpenBundle& open = *verified.opened;
  const auto signer = signer_of(open.bundle->header());
  const std::string said = !signer             ? "not signed"
                           : open.trust_status ? "signed by " + short_id(*signer)
                                               : "not trusted";
  std::vector<std::vector<std::string>> rows = {{"provenance", said}, {"builder", provenance.builder}};
  if (!provenance.source.empty()) rows.push_back({"source", provenance.source});
  if (!provenance.commit.empty()) rows.push_back({"commit", provenance.commit});
  for (const BundleCompiler& compiler : verified.compilers) {
    rows.push_back(
        {"compiler", compiler.name + ' ' + compiler.version + " (" + compiler.digest.hex().substr(0, 12) + ')'});
  }
  return table_text(rows, "  ");
}

}  // namespace kiln::cli
