// SPDX-License-Identifier: Apache-2.0
// Provenance statements that do not belong to the bundle.
#include "bundle/provenance.hpp"
#include "hostile/hostile_input.hpp"

namespace kiln::test {
namespace {

class HostileProvenance : public HostileInput {
 protected:
  HostileProvenance() {
    source_.builder = "https://ci.example/build/7";
    source_.source = "git+https://git.example/app";
    source_.commit = "0123456789012345678901234567890123456789";
  }
  Variables trusted() {
    return {{"KILN_TRUST", write("policy.toml", "[[key]]\npublic = \"" + key_.public_key().text() +
                                                    "\"\nnamespaces = [\"local\"]\n")}};
  }
  std::vector<BundleMember> members() { return {member_of("a.cu", Target::parse("sm_80").value())}; }

  const SecretKey key_ = SecretKey::generate();
  ProvenanceSource source_;
};

TEST_F(HostileProvenance, ProvenanceIsShownByVerify) {
  write_text(path("app.kiln"), image_of(members(), &key_, {"local", 0, source_}).to_file());
  const Ran ran = run({"bundle", "verify", "app.kiln"}, trusted());
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  for (const std::string& text : {"signed by " + short_id(key_.public_key().id()), source_.builder, source_.source,
                                  source_.commit, std::string("nvrtc 13.0.88")}) {
    EXPECT_NE(ran.out.find(text), std::string::npos) << text << " is not in " << ran.out;
  }
  const auto json = run({"bundle", "verify", "app.kiln", "--json"}, trusted()).json()["bundles"][0]["provenance"];
  EXPECT_EQ(json["builder"], source_.builder);
  EXPECT_EQ(json["commit"], source_.commit);
  EXPECT_EQ(json["signed"], true);
  EXPECT_EQ(json["compilers"][0]["version"], "13.0.88");

  write_text(path("unsigned.kiln"), image_of(members(), nullptr, {"local", 0, source_}).to_file());
  const Ran unsigned_one = run({"bundle", "verify", "unsigned.kiln"}, kUnsignedAllowed);
  EXPECT_NE(unsigned_one.out.find("provenance  not signed"), std::string::npos) << unsigned_one.out;
}

TEST_F(HostileProvenance, ChangedProvenanceIsRejected) {
  const BundleImage honest = image_of(members(), &key_, {"local", 0, source_});
  ProvenanceSource lie = source_;
  lie.builder = "https://ci.example/build/8";
  const BundleImage other = image_of(members(), nullptr, {"local", 0, lie});
  // The other description with the header and the signature of the first.
  BundleImage mixed{honest.head, other.groups};
  write_text(path("mixed.kiln"), mixed.to_file());
  EXPECT_EQ(run({"bundle", "verify", "mixed.kiln"}, trusted()).exit_code, 1);
  const auto header = decode_bundle_header(as_bytes(honest.head), honest.head.size()).value();
  std::string head = other.head;
  const std::size_t trailer = 168 + header.pages.size() * 72 + header.group_sizes.size() * 8;
  head.replace(trailer + 32, 96, honest.head, trailer + 32, 96);
  write_text(path("stolen.kiln"), BundleImage{head, other.groups}.to_file());
  const Ran ran = run({"bundle", "verify", "stolen.kiln"}, trusted());
  EXPECT_EQ(ran.exit_code, 4) << ran.out << ran.err;
  EXPECT_EQ(ran.out.find("build/8"), std::string::npos) << ran.out;
}

TEST_F(HostileProvenance, ProvenanceOfOtherContentIsReported) {
  const auto bundle = open_bytes(image_of(members(), nullptr, {"local", 0, source_}).to_file()).value();
  // The same statement about another bundle, signed by a trusted key.
  Forge forge({member_of("b.cu", Target::parse("sm_80").value())});
  BundleDescription about = open_bytes(forge.build()).value()->description().value();
  about.provenance = bundle->description().value().provenance;
  forge.describe(about.encode());
  write_text(path("other.kiln"), forge.build(&key_));
  const Ran ran = run({"bundle", "verify", "other.kiln"}, trusted());
  EXPECT_EQ(ran.exit_code, 1) << ran.out;
  EXPECT_TRUE(ran.says("provenance is about other content")) << ran.err;
}

TEST_F(HostileProvenance, StatementsAreBoundedAndChecked) {
  const auto rejected = [&](const std::string& statement) {
    ProvenanceSource from;
    from.statement = statement;
    BundleWriter writer({"local", 0, from});
    writer.add(members()[0]).value();
    const auto image = writer.finish(nullptr);
    return image ? std::string("accepted") : image.error().message;
  };
  const std::string good = open_bytes(image_of(members(), nullptr, {"local", 0, source_}).to_file())
                               .value()
                               ->description()
                               .value()
                               .provenance;
  EXPECT_EQ(rejected(good), "accepted");
  EXPECT_NE(rejected("{}").find("_type"), std::string::npos);
  EXPECT_NE(rejected(std::string(2 << 20, ' ')).find("larger than 1 MiB"), std::string::npos);
  EXPECT_NE(rejected(std::string(100, '[')).find("nested too deeply"), std::string::npos);
  std::string other = good;
  other.replace(other.find("\"sha256\":\"") + 10, 4, "0000");
  EXPECT_NE(rejected(other).find("other content"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
