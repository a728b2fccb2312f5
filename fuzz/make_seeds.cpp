// SPDX-License-Identifier: Apache-2.0
// Writes seeds with kiln's own encoders, for parsers whose inputs are not written by hand. Run it after a format
// change:
//   build/dev/bin/make_fuzz_seeds fuzz/corpus
// The seeds are stored next to hand-written seeds and the findings of campaigns (tools/fuzz_campaign), under
// descriptive names.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "bundle/epoch_memory.hpp"
#include "cache/activity_format.hpp"
#include "cache/entry_format.hpp"
#include "cache/usage_format.hpp"
#include "core/recipe.hpp"
#include "remote/action_result.hpp"
#include "remote/entry_verifier.hpp"
#include "remote/lease_record.hpp"
#include "remote/packed_entry.hpp"
#include "session/config/settings.hpp"
#include "worker/pch_cache.hpp"
#include "worker/pch_check.hpp"
#include "worker/worker_protocol.hpp"

namespace {

using namespace kiln;

class Corpus {
 public:
  explicit Corpus(std::filesystem::path root) : root_(std::move(root)) {}

  void add(std::string_view fuzzer, std::string_view name, std::string_view bytes) {
    const std::filesystem::path directory = root_ / fuzzer;
    std::filesystem::create_directories(directory);
    std::ofstream out(directory / name, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    whole_ = whole_ && out.flush().good();
  }
  bool whole() const { return whole_; }

 private:
  std::filesystem::path root_;
  bool whole_ = true;
};

DependencySet dependency_set_of_three() {
  DependencySet dependency_set;
  dependency_set.items.push_back({0, DependencySet::State::Read, "geometry/rows.cuh", sha256("rows"), 0});
  dependency_set.items.push_back({0, DependencySet::State::Absent, "geometry/cuda_fp16.h", {}, 0});
  dependency_set.items.push_back(
      {DependencySet::kAbsolute, DependencySet::State::Present, "/usr/include/stdint.h", {}, 0});
  return dependency_set;
}

Artifact artifact() {
  Artifact made;
  made.bytes = Bytes::of(
      "\x7f"
      "ELF and more");
  made.target = Target::sm(80);
  made.entries = {{"scale<float>", "_Z5scaleIfEvPT_i"}, {"add", "add"}};
  made.metadata = {"scale.cu", "nvrtc 13.0.88", 123.5, "a warning\n"};
  return made;
}

Recipe recipe() {
  const Unit unit = Unit::cuda("scale.cu", "__global__ void add(float* x) { *x += N; }")
                        .with_option("-DN=4")
                        .with_include_root("/include")
                        .with_include_root("/sealed", "/sealed.squashfs")
                        .with_header("n.h", "#define M 1\n")
                        .with_preamble("template<class T> struct Row {};\n")
                        .with_entry("add");
  CompilerIdentity compiler{"nvrtc", "13.0.88", "/lib/libnvrtc.so.13", sha256("nvrtc")};
  compiler.environment = {{"NVRTC_APPEND_FLAGS", "-G"}};
  compiler.libraries = {"/lib/libnvrtc-builtins.so.13.0"};
  compiler.roots = {{"/cuda/include", ""}};
  return {unit, Target::sm(90), compiler, "/folder"};
}

std::vector<FileAccess> observations() {
  FileAccess read;
  read.path = "/include/rows.cuh";
  read.state = FileAccess::State::Read;
  read.content.digest = sha256("#pragma once");
  read.content.facts.has_once = true;
  read.content.facts.pieces = "__ __TI";
  FileAccess missing;
  missing.path = "./rows.cuh";
  missing.inconsistent = true;
  return {read, missing};
}

void worker_frames(Corpus& corpus) {
  const WorkerJob job{recipe(),
                      {PchRequest::Mode::Use, "/cache/one.pch", 4096, 77, "h.h(1): warning\n", true},
                      {SandboxPlan::Mode::MayRunPrograms, true, {"/opt/toolkit/lib64"}, {"/tmp/own"}}};
  corpus.add("worker_frame", "job", encode_frame(frame_of(job)));

  WorkerReply reply;
  reply.compiled.artifact = artifact();
  reply.accesses_complete = true;
  reply.observations = observations();
  reply.pch = {PchResult::Outcome::Created, "", 4096, 77, observations(), "h.h(1): warning\n"};
  corpus.add("worker_frame", "reply", encode_frame(frame_of(reply)));
  corpus.add("worker_frame", "reply_payload", frame_of(reply).payload);

  corpus.add("worker_frame", "open",
             encode_frame(frame_of(FileRequest{FileRequest::Purpose::Write, "/cache/one.pch"})));
  corpus.add("worker_frame", "opened", encode_frame(frame_of(FileReply{13, {}})));

  WorkerReply closed;
  closed.compiled = {artifact(), "its inputs changed"};
  closed.compiled.artifact.dependency_set = std::make_shared<const DependencySet>(dependency_set_of_three());
  closed.has_dependency_set = true;
  closed.pch = {PchResult::Outcome::Rejected, "another compiler made it", 0, 0, {}};
  corpus.add("worker_frame", "reply_with_closure", encode_frame(frame_of(closed)));

  const WorkerFailure failure{
      Error{Code::CompileFailed, "scale.cu does not compile", "scale.cu(1): error: no such type"}, observations(),
      WorkerFailure::Cause::Exhausted};
  corpus.add("worker_frame", "failure", encode_frame(frame_of(failure)));

  const PchVerdict differs{PchVerdict::Kind::Differs, "using one: another output",
                           std::chrono::nanoseconds(1'700'000'000'000'000'000)};
  corpus.add("pch", "verdict", encode_verdict(sha256("a library"), "here", differs));
}

void stores(Corpus& corpus) {
  const Artifact made = artifact();
  const ArtifactKey key{sha256("a key")};
  corpus.add("entry", "two_entries", encode_entry_header(key, made) + std::string(made.bytes.view()));
  const Activity activity{20'000, "train.py", 1, 20, 3, 4, 0, 61'000};
  corpus.add("activity", "two_records",
             encode_activity(activity) + "KILN" + encode_activity({20'001, "", 0, 1, 0, 0, 1, 0}));
  corpus.add("usage", "journal",
             encode_usage_head(std::chrono::seconds(1'700'000'000)) + encode_usage_record(4096) +
                 encode_usage_record(-512) + encode_usage_record(1).substr(0, 9));
}

void remotes(Corpus& corpus) {
  const Artifact made = artifact();
  const std::string entry = encode_entry_header(ArtifactKey{sha256("a key")}, made) + std::string(made.bytes.view());
  // The key that fuzz_remote_entry.cpp requests: if signed, this entry is served.
  corpus.add("remote_entry", "entry_of_the_key", entry);
  Artifact large = made;
  large.bytes = Bytes::copy_of(std::string(1000, 'x'));
  const std::string content =
      pack_entry(encode_entry_header(ArtifactKey{sha256("a key")}, large) + std::string(1000, 'x')).value();
  corpus.add("remote_entry", "packed_entry", content);
  // The size in 16 bits and the frame, as fuzz_remote_entry.cpp puts them behind a header.
  corpus.add("remote_entry", "frame_of_the_entry", content.substr(12, 2) + content.substr(kPackedHeaderBytes));
  const std::string path = EntryPath{ArtifactKey{sha256("a key")}}.text();
  const ActionResult action{{{path, sha256(entry), entry.size()}, {"log", sha256("log"), 3}}, "what was said"};
  corpus.add("action_result", "two_files", action.encode());
  corpus.add("remote_entry", "two_files", action.encode());
  corpus.add("lease_row", "new", LeaseRecord{"host:1:00", std::chrono::milliseconds(1000), 0}.text());
}

// Every setting with its default value, if it has one, and every path setting with a path.
void settings(Corpus& corpus) {
  std::string defaults;
  std::string paths;
  for (const SettingSpec& kind : all_settings()) {
    const std::string name = '"' + std::string(kind.name) + "\" = ";
    if (*kind.default_value != '\0') defaults += name + '"' + kind.default_value + "\"\n";
    if (kind.is_path()) paths += name + "\"/a/b\"\n";
  }
  corpus.add("config", "defaults.toml", defaults);
  corpus.add("config", "paths.toml", paths);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_fuzz_seeds DIRECTORY\n");
    return 2;
  }
  Corpus corpus(argv[1]);
  worker_frames(corpus);
  corpus.add("pch", "empty", encode_pch({}, "here", {}));
  corpus.add("pch", "two",
             encode_pch(sha256("key"), "here",
                        {"", 4096, 77, dependency_set_of_three(), observations(), "h.h(1): warning\n"}));
  corpus.add("recipe", "cuda", encode(recipe()));
  corpus.add("recipe", "metadata", encode_metadata(artifact()));
  stores(corpus);
  remotes(corpus);
  settings(corpus);
  corpus.add("epochs", "none", encode_epochs({}));
  corpus.add("epochs", "two", encode_epochs({{"acme/toys", 1}, {"acme/vision", 7}}));
  if (!corpus.whole()) std::fprintf(stderr, "not all seeds could be written\n");
  return corpus.whole() ? 0 : 1;
}
