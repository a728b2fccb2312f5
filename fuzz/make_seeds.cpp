// Writes seeds by kiln's own encoders, for the parsers whose inputs nobody writes by hand. Run it where a format
// changes:
//   build/dev/bin/make_fuzz_seeds fuzz/corpus
// Each lies beside what was written by hand and what campaigns found (tools/fuzz_campaign), under a name that says what
// it is.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "compile/worker_protocol.hpp"
#include "core/recipe.hpp"
#include "remote/action_result.hpp"
#include "remote/lease_row.hpp"
#include "session/settings.hpp"
#include "store/entry_format.hpp"
#include "store/usage_format.hpp"

namespace {

using namespace kiln;

class Corpus {
 public:
  explicit Corpus(std::filesystem::path root) : root_(std::move(root)) {}

  void add(std::string_view fuzzer, std::string_view name, std::string_view bytes) {
    const std::filesystem::path folder = root_ / fuzzer;
    std::filesystem::create_directories(folder);
    std::ofstream out(folder / name, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    whole_ = whole_ && out.flush().good();
  }
  bool whole() const { return whole_; }

 private:
  std::filesystem::path root_;
  bool whole_ = true;
};

Closure closure_of_three() {
  Closure closure;
  closure.items.push_back({0, Closure::State::Read, "geometry/rows.cuh", sha256("rows"), 0});
  closure.items.push_back({0, Closure::State::Absent, "geometry/cuda_fp16.h", {}, 0});
  closure.items.push_back({Closure::kAbsolute, Closure::State::Present, "/usr/include/stdint.h", {}, 0});
  return closure;
}

Artifact artifact() {
  Artifact made;
  made.bytes = Bytes::of(
      "\x7f"
      "ELF and more");
  made.target = Target::sm(80);
  made.entries = {{"scale<float>", "_Z5scaleIfEvPT_i"}, {"add", "add"}};
  made.about = {"scale.cu", "nvrtc 13.0.88", 123.5, "a warning\n"};
  return made;
}

Recipe recipe() {
  const Unit unit = Unit::cuda("scale.cu", "__global__ void add(float* x) { *x += N; }")
                        .option("-DN=4")
                        .include_root("/include")
                        .include_root("/sealed", "/sealed.squashfs")
                        .header("n.h", "#define M 1\n")
                        .preamble("template<class T> struct Row {};\n")
                        .entry("add");
  CompilerIdentity compiler{"nvrtc", "13.0.88", "/lib/libnvrtc.so.13", sha256("nvrtc")};
  compiler.environment = {{"NVRTC_APPEND_FLAGS", "-G"}};
  compiler.libraries = {"/lib/libnvrtc-builtins.so.13.0"};
  compiler.roots = {{"/cuda/include", ""}};
  return {unit, Target::sm(90), compiler, "/folder"};
}

std::vector<Observation> observations() {
  Observation read;
  read.path = "/include/rows.cuh";
  read.state = Observation::State::Read;
  read.asked_ns = 1'700'000'000'000'000'000;
  Observation missing;
  missing.path = "./rows.cuh";
  missing.both = true;
  return {read, missing};
}

void worker_frames(Corpus& corpus) {
  const WorkerJob job{recipe(), {PchOrder::Mode::Use, "/shelf/one.pch", 4096, 77}};
  corpus.add("worker_frame", "job", encode_frame(frame_of(job)));

  WorkerReply reply;
  reply.compiled.artifact = artifact();
  reply.observed = true;
  reply.observations = observations();
  reply.pch = {PchReport::Outcome::Created, "", 4096, 77, observations()};
  corpus.add("worker_frame", "reply", encode_frame(frame_of(reply)));
  corpus.add("worker_frame", "reply_payload", frame_of(reply).payload);

  WorkerReply closed;
  closed.compiled = {artifact(), "its inputs changed"};
  closed.compiled.artifact.closure = std::make_shared<const Closure>(closure_of_three());
  closed.has_closure = true;
  closed.pch = {PchReport::Outcome::Refused, "another compiler made it", 0, 0, {}};
  corpus.add("worker_frame", "reply_with_closure", encode_frame(frame_of(closed)));

  const WorkerFailure failure{
      Error{Code::CompileFailed, "scale.cu does not compile", "scale.cu(1): error: no such type"}, observations(),
      true};
  corpus.add("worker_frame", "failure", encode_frame(frame_of(failure)));
}

void stores(Corpus& corpus) {
  const Artifact made = artifact();
  const Key key{sha256("a key")};
  corpus.add("entry", "two_entries", encode_entry_head(key, made) + std::string(made.bytes.view()));
  corpus.add("usage", "journal",
             encode_usage_head(std::chrono::seconds(1'700'000'000)) + encode_usage_record(4096) +
                 encode_usage_record(-512) + encode_usage_record(1).substr(0, 9));
}

void remotes(Corpus& corpus) {
  const Artifact made = artifact();
  const std::string entry = encode_entry_head(Key{sha256("a key")}, made) + std::string(made.bytes.view());
  // The key that fuzz_remote_entry.cpp asks for: signed, this is served.
  corpus.add("remote_entry", "entry_of_the_key", entry);
  const ActionResult action{{{"entry", sha256(entry), entry.size()}, {"log", sha256("log"), 3}}, "what was said"};
  corpus.add("action_result", "two_files", action.encode());
  corpus.add("remote_entry", "two_files", action.encode());
  corpus.add("lease_row", "new", LeaseRow{"host:1:00", std::chrono::milliseconds(1000), 0}.text());
}

// Every setting with the value that it has anyway, where it has one, and with one that is a path.
void settings(Corpus& corpus) {
  std::string defaults;
  std::string paths;
  for (const SettingKind& kind : setting_kinds()) {
    const std::string name = '"' + std::string(kind.name) + "\" = ";
    if (*kind.default_value != '\0') defaults += name + '"' + kind.default_value + "\"\n";
    if (kind.is_path) paths += name + "\"/a/b\"\n";
  }
  corpus.add("config", "defaults.toml", defaults);
  corpus.add("config", "paths.toml", paths);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_fuzz_seeds FOLDER\n");
    return 2;
  }
  Corpus corpus(argv[1]);
  worker_frames(corpus);
  corpus.add("recipe", "cuda", encode(recipe()));
  corpus.add("recipe", "metadata", encode_metadata(artifact()));
  stores(corpus);
  remotes(corpus);
  settings(corpus);
  if (!corpus.whole()) std::fprintf(stderr, "not all of it could be written\n");
  return corpus.whole() ? 0 : 1;
}
