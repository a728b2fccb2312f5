// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/hash.hpp"
#include "remote/action_result.hpp"
#include "remote/entry_verifier.hpp"
#include "remote/remote_store.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/remote_fixture.hpp"

namespace kiln::test {
namespace {

using Bucket = ObjectStore::Bucket;

class InlinedContent : public testing::Test {
 protected:
  RemoteStore store(std::shared_ptr<const Signer> signer) {
    return RemoteStore({.object_store = object_store_,
                        .policy = std::make_shared<const TrustPolicy>(trust_.policy()),
                        .signer = std::move(signer),
                        .emitter = log_.emitter()});
  }
  RemoteStore ci() { return store(trust_.ci_signer()); }
  bool is_found() {
    const auto hit = store(nullptr).get(key_, {});
    return hit && hit->has_value();
  }

  std::shared_ptr<MemoryObjectStore> object_store_ = std::make_shared<MemoryObjectStore>();
  TrustFixture trust_;
  EventLog log_;
  const ArtifactKey key_ = key_number(1);
};

TEST_F(InlinedContent, ActionWithContentIsReadableForOlderReaders) {
  for (const std::size_t bytes : {std::size_t{48 << 10}, std::size_t{48 << 10} - 1'000, std::size_t{47 << 10}}) {
    ASSERT_TRUE(ci().put(key_, artifact_of(key_, bytes), {}).has_value());
    EXPECT_LE(object_store_->body(Bucket::ActionCache, action_name("acme", key_)).size(), RemoteStore::kMaxActionBytes);
    EXPECT_TRUE(is_found());
  }
}

TEST_F(InlinedContent, ContentOfActionIsVerifiedAndActionsWithoutItAreRead) {
  ASSERT_TRUE(ci().put(key_, artifact_of(key_, 1'000), {}).has_value());
  const Digest name = action_name("acme", key_);
  ActionResult action = ActionResult::decode(as_bytes(object_store_->body(Bucket::ActionCache, name))).value();
  const std::string content = action.files.front().contents;
  EXPECT_EQ(content, object_store_->body(Bucket::Cas, action.files.front().digest));

  action.files.front().contents.clear();  // as older versions wrote it
  object_store_->set(Bucket::ActionCache, name, action.encode());
  EXPECT_TRUE(is_found());
  EXPECT_EQ(object_store_->reads(Bucket::Cas), 1);
  EXPECT_TRUE(log_.of(Event::Kind::RemoteRejected).empty());

  std::string changed = content;
  changed.back() ^= 1;
  for (const std::string& other : {changed, content + "x", content.substr(1), std::string("x")}) {
    action.files.front().contents = other;
    object_store_->set(Bucket::ActionCache, name, action.encode());
    EXPECT_FALSE(is_found());
    EXPECT_EQ(log_.of(Event::Kind::RemoteRejected).back().selected, "content_mismatch");
  }
  EXPECT_EQ(log_.of(Event::Kind::RemoteRejected).size(), 4u);
}

}  // namespace
}  // namespace kiln::test
