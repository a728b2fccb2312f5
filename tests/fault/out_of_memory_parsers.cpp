// SPDX-License-Identifier: Apache-2.0
// Parsers of external input. They are internal to modules, so std::bad_alloc may be thrown. JSON parsers are excluded:
// the library's values allocate in their destructors and end the process if they cannot
// (docs/internals/decisions/0013.md).
#include "cache/entry_format.hpp"
#include "core/dependency_set.hpp"
#include "fault/out_of_memory.hpp"
#include "remote/action_result.hpp"
#include "session/config/manifest.hpp"
#include "session/config/settings.hpp"
#include "session/config/trust_policy_file.hpp"
#include "support/fixtures/artifacts.hpp"
#include "worker/worker_protocol.hpp"

namespace kiln::test {
namespace {

constexpr const char* kManifest = R"(namespace = "acme/vision"
epoch = 3
architectures = ["sm_80", "sm_90", "compute_90"]

[[unit]]
source = "kernels/point_in_polygon.cu"
include = ["include", "third_party/include"]
options = ["-std=c++17", "-DTILE=4"]
entries = ["pip_dense", "pip_sparse<float>"]
)";

constexpr const char* kSettings = R"(compile = "never"
"worker.memory" = "2G"
[cache]
path = ["/var/cache/kiln", "/opt/kiln/prefilled"]
max_size = "50G"
trusted_users = [1001, 1002]
)";

// The parsed result is compared with that of the same text while there was memory.
template <class Parse>
Operation parser(const std::string& name, Parse parse) {
  Operation operation;
  operation.name = "parse " + name;
  operation.may_throw = true;
  operation.run = [parse](const std::string&) {
    const auto parsed = parse();
    if (!parsed) return Outcome::failed(parsed.error());
    return Outcome::of(*parsed, "the parsed result differs");
  };
  return operation;
}

template <class T>
Result<bool> reported(const Result<T>& parsed, bool same) {
  if (!parsed) return parsed.error();
  return same;
}

Operation frames() {
  return parser("worker frames", []() -> Result<bool> {
    const Unit unit = Unit::cuda("a long name of a unit.cu", "extern \"C\" __global__ void k() {}").with_entry("k");
    const WorkerJob job{Recipe{unit.with_option("-DLONG=1"), Target::sm(90), {}, "/a/working/directory"}, {}};
    const auto frame = decode_frame(encode_frame(frame_of(job)));
    if (!frame) return frame.error();
    const auto back = decode_job(frame->payload);
    if (!back) return back.error();
    WorkerReply reply;
    reply.compiled.artifact = artifact_of(key_number(1), 70'000);
    const auto answered = decode_reply(frame_of(reply));
    if (!answered) return answered.error();
    return back->recipe.unit.source() == job.recipe.unit.source() &&
           same(answered->compiled.artifact, reply.compiled.artifact);
  });
}

Operation entry() {
  return parser("an entry", []() -> Result<bool> {
    const Artifact artifact = artifact_of(key_number(1), 5'000);
    const Bytes file = Bytes::of(encode_entry_header(key_number(1), artifact) + std::string(artifact.bytes.view()));
    const auto back = decode_entry(key_number(1), file);
    return reported(back, back.has_value() && same(*back, artifact));
  });
}

}  // namespace

void add_parsers(std::vector<Operation>& operations) {
  operations.push_back(entry());
  operations.push_back(frames());
  operations.push_back(parser("a dependency set", [] {
    const DependencySet dependency_set = dependency_set_number(1, 20);
    const auto back = DependencySet::decode(dependency_set.encode());
    return reported(back, back.has_value() && *back == dependency_set);
  }));
  operations.push_back(parser("kiln.toml", [] {
    const auto manifest = parse_manifest(kManifest, "/project");
    return reported(manifest,
                    manifest.has_value() && manifest->members.size() == 1 && manifest->architectures.size() == 3);
  }));
  operations.push_back(parser("config.toml", [] {
    const auto settings = parse_config(kSettings);
    return reported(settings, settings.has_value() && settings->size() == 5);
  }));
  operations.push_back(parser("an action result", [] {
    ActionResult result;
    result.files.push_back({"artifact", sha256("content"), 7});
    result.stdout_raw = std::string(300, 's');
    const std::string body = result.encode();
    const auto back = ActionResult::decode({reinterpret_cast<const std::uint8_t*>(body.data()), body.size()});
    return reported(back, back.has_value() && back->stdout_raw == result.stdout_raw && back->files.size() == 1);
  }));
}

}  // namespace kiln::test
