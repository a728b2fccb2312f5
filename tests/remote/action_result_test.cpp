// SPDX-License-Identifier: Apache-2.0
#include "remote/action_result.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/hash.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

const std::string kHex(64, 'a');

// The encoder and decoder of protoc, which are independent of kiln's. Skipped if protoc is not installed.
class Protoc {
 public:
  static bool installed() { return std::system("command -v protoc >/dev/null 2>&1") == 0; }
  std::string decode(const std::string& body) const { return run("decode", body); }
  std::string encode(const std::string& text) const { return run("encode", text); }

 private:
  std::string run(const std::string& what, const std::string& input) const {
    write_text(directory_.path("in"), input);
    const std::string command = "protoc --" + what + "=build.bazel.remote.execution.v2.ActionResult -I " +
                                KILN_SOURCE_DIR "/tests/remote action_result.proto < " + directory_.path("in") + " > " +
                                directory_.path("out");
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return read_text(directory_.path("out"));
  }
  TemporaryDirectory directory_;
};

TEST(ActionResultTest, RoundTrips) {
  const ActionResult result{{{"entry", sha256("one"), 0, "one\n"}, {"other", sha256("two"), std::uint64_t{1} << 40}},
                            std::string("said\0so", 7)};
  const std::string body = result.encode();
  const auto read = ActionResult::decode(as_bytes(body));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->files.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read->files[i].path, result.files[i].path);
    EXPECT_EQ(read->files[i].digest, result.files[i].digest);
    EXPECT_EQ(read->files[i].size, result.files[i].size);
    EXPECT_EQ(read->files[i].contents, result.files[i].contents);
  }
  EXPECT_EQ(read->stdout_raw, result.stdout_raw);
  EXPECT_EQ(read->encode(), body);
  EXPECT_EQ(ActionResult().encode(), "");
}

TEST(ActionResultTest, ProtocDecodesEncodedMessage) {
  if (!Protoc::installed()) GTEST_SKIP() << "protoc is not installed";
  const ActionResult result{{{"entry", Digest::from_hex(kHex).value(), 65'536, "inline"}},
                            std::string("\x01said\xff\n", 7)};
  EXPECT_EQ(Protoc().decode(result.encode()),
            "output_files {\n  path: \"entry\"\n  digest {\n    hash: \"" + kHex +
                "\"\n    size_bytes: 65536\n  }\n  contents: \"inline\"\n}\nstdout_raw: \"\\001said\\377\\n\"\n");
}

TEST(ActionResultTest, DecodesProtocMessageAndSkipsUnknownFields) {
  if (!Protoc::installed()) GTEST_SKIP() << "protoc is not installed";
  const std::string body = Protoc().encode(
      "output_files { path: \"entry\" digest { hash: \"" + kHex +
      "\" size_bytes: 300 } is_executable: true contents: \"inline\" } exit_code: -1 stdout_raw: \"said\" "
      "stdout_digest { hash: \"short\" size_bytes: 4 } stderr_raw: \"more\" execution_metadata { worker: \"w\" }");
  const auto read = ActionResult::decode(as_bytes(body));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->files.size(), 1u);
  EXPECT_EQ(read->files[0].path, "entry");
  EXPECT_EQ(read->files[0].digest.hex(), kHex);
  EXPECT_EQ(read->files[0].size, 300u);
  EXPECT_EQ(read->files[0].contents, "inline");
  EXPECT_EQ(read->stdout_raw, "said");
}

TEST(ActionResultTest, EncodesWireFormat) {
  const ActionResult result{{{"e", Digest::from_hex(kHex).value(), 300}}, "s"};
  const std::string digest = "\x0a\x40" + kHex + "\x10\xac\x02";
  EXPECT_EQ(result.encode(), std::string("\x12\x4a") + "\x0a\x01" + "e" + "\x12\x45" + digest + "\x2a\x01" + "s");
}

TEST(ActionResultTest, DecodesEveryPrefixWithoutOverrun) {
  const std::string body = ActionResult{{{"entry", sha256("one"), 77}}, "what was said"}.encode();
  const std::size_t first = body.size() - std::string("what was said").size() - 2;  // start of the second field
  for (std::size_t size = 0; size < body.size(); ++size) {
    // A separate copy, so that a sanitizer detects a read past its end.
    const std::vector<std::uint8_t> cut(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(size));
    const auto read = ActionResult::decode(cut);
    EXPECT_EQ(read.has_value(), size == 0 || size == first) << size;
    if (!read) {
      EXPECT_EQ(read.error().code, Code::Corrupt);
    }
  }
}

TEST(ActionResultTest, SkipsUnknownFieldsAndRejectsGroups) {
  using namespace std::string_literals;
  const std::string said = "\x2a\x01s";
  const auto decoded = [&](const std::string& before) { return ActionResult::decode(as_bytes(before + said)); };
  for (const std::string& unknown : {"\x50\x96\x01"s, "\x51"s + std::string(8, 'x'), "\x52\x03xyz"s, "\x55wxyz"s}) {
    const auto read = decoded(unknown);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->stdout_raw, "s");
  }
  for (const std::string& wrong :
       {"\x53"s, "\x54"s, "\x56"s, "\x57"s, "\x00\x01"s, "\x28\x01"s, "\x10\x01"s, "\x50"s + std::string(10, '\xff'),
        "\x50"s + std::string(9, '\xff') + "\x02"s, "\x52\xff\xff\xff\xff\x0f"s}) {
    EXPECT_FALSE(decoded(wrong).has_value()) << testing::PrintToString(wrong);
  }
}

}  // namespace
}  // namespace kiln::test
