// SPDX-License-Identifier: Apache-2.0
#include "hostile_scenarios.hpp"

namespace kiln::test {

using namespace std::string_literals;

std::vector<Scenario> action_scenarios() {
  const auto bad = [](std::string name, std::function<void(Stage&)> plant) {
    return Scenario{std::move(name), "not_an_action_result", Reach::Action, std::move(plant)};
  };
  return {
      bad("garbage", [](Stage& s) { s.action(payload_of(s.key, 400)); }),
      bad("an_error_page", [](Stage& s) { s.action("<html><body>502 Bad Gateway</body></html>"); }),
      bad("a_truncated_action", [](Stage& s) { s.action(s.honest().substr(0, s.honest().size() - 1)); }),
      bad("an_action_above_the_maximum_size",
          [](Stage& s) { s.action(s.honest() + field(99, std::string(70'000, 'x'))); }),
      bad("an_action_truncated_by_the_object_store",
          [](Stage& s) {
            s.object_store->forge([](ObjectStore::Bucket, const Digest&) {
              return Result<std::optional<Bytes>>(
                  make_error(Code::Corrupt, "the connection was closed before the end of the body"));
            });
          }),
      bad("65_files",
          [](Stage& s) {
            ActionResult many = s.result(s.ci().encode());
            many.files.resize(65, many.files.front());
            s.action(many.encode());
          }),
      bad("a_nested_length_past_the_end", [](Stage& s) { s.action("\x12\x04\x12\x7f\x0a\x01"s + s.honest()); }),
      bad("a_length_of_2_64", [](Stage& s) { s.action("\x12"s + varint(~std::uint64_t{0}) + s.honest()); }),
      bad("a_number_without_an_end", [](Stage& s) { s.action("\x20"s + std::string(11, '\xff') + s.honest()); }),
      bad("a_group", [](Stage& s) { s.action("\x53" + s.honest() + "\x54"); }),
      bad("a_field_without_a_number", [](Stage& s) { s.action("\x02\x00"s + s.honest()); }),
      bad("files_that_are_a_number", [](Stage& s) { s.action("\x10\x01" + s.honest()); }),
      bad("a_digest_that_is_not_hex",
          [](Stage& s) { s.action(file_field(std::string(64, 'g'), 500) + field(5, s.ci().encode())); }),
      bad("a_digest_of_another_length",
          [](Stage& s) { s.action(file_field(std::string(40, 'a'), 500) + field(5, s.ci().encode())); }),
      bad("a_file_without_a_digest",
          [](Stage& s) { s.action(field(2, field(1, s.path)) + field(5, s.ci().encode())); }),
      bad("a_size_of_2_63",
          [](Stage& s) { s.action(file_field(s.digest.hex(), std::uint64_t{1} << 63) + field(5, s.ci().encode())); }),
      {"an_empty_action", "no_statement", Reach::Action, [](Stage& s) { s.action(""); }},
      {"an_action_of_another_client", "no_statement", Reach::Action, [](Stage& s) { s.say(""); }},
      {"a_size_above_the_maximum", "too_large", Reach::Action,
       [](Stage& s) { s.action(file_field(s.digest.hex(), std::uint64_t{1} << 40) + field(5, s.ci().encode())); }},
      {"a_size_of_zero", "content_mismatch", Reach::Action,
       [](Stage& s) { s.action(file_field(s.digest.hex(), 0) + field(5, s.ci().encode())); }},
      {"no_file", "content_mismatch", Reach::Action, [](Stage& s) { s.action(field(5, s.ci().encode())); }},
      {"two_files", "content_mismatch", Reach::Action,
       [](Stage& s) {
         ActionResult two = s.result(s.ci().encode());
         two.files.push_back(two.files.front());
         s.action(two.encode());
       }},
      {"a_file_of_another_name", "content_mismatch", Reach::Action,
       [](Stage& s) {
         ActionResult result = s.result(s.ci().encode());
         result.files.front().path = "../entry";
         s.action(result.encode());
       }},
      {"a_file_that_was_not_signed", "content_mismatch", Reach::Action,
       [](Stage& s) {
         const std::string forged = entry_file(s.key, artifact_of(s.other_key, 300));
         s.object_store->set(ObjectStore::Bucket::Cas, sha256(forged), forged);
         ActionResult result = s.result(s.ci().encode());
         result.files.front().digest = sha256(forged);
         s.action(result.encode());
       }},
  };
}

std::vector<Scenario> statement_scenarios() {
  const auto bad = [](std::string name, std::function<void(Stage&)> plant) {
    return Scenario{std::move(name), "statement_malformed", Reach::Action, std::move(plant)};
  };
  const auto unsealed = [](std::string name, std::function<void(Stage&)> plant) {
    return Scenario{std::move(name), "bad_signature", Reach::Action, std::move(plant)};
  };
  return {
      bad("a_statement_of_garbage", [](Stage& s) { s.say(payload_of(s.key, 200)); }),
      bad("a_truncated_statement", [](Stage& s) { s.say(s.ci().encode().substr(0, 80)); }),
      bad("trailing_bytes_after_the_statement", [](Stage& s) { s.say(s.ci().encode() + "x"); }),
      bad("a_statement_of_another_version", [](Stage& s) { s.say(s.ci().encode().replace(8, 1, "\x02")); }),
      bad("a_statement_above_the_maximum_size", [](Stage& s) { s.say(s.ci().encode() + std::string(2'000, 'x')); }),
      bad("dependency_sets_instead_of_a_statement", [](Stage& s) { s.say(encode_hints(s.request, {})); }),
      unsealed(
          "the_action_of_another_key",
          [](Stage& s) {
            const std::string entry = entry_file(s.other_key, artifact_of(s.other_key, 300));
            const auto stated =
                s.by(s.trust.ci_key, {entry_subject(s.other_key), "acme", TrustFixture::kEpoch, sha256(entry)});
            s.object_store->set(ObjectStore::Bucket::Cas, sha256(entry), entry);
            s.action(
                ActionResult{{{EntryPath{s.other_key}.text(), sha256(entry), entry.size()}}, stated.encode()}.encode());
          }),
      unsealed("a_statement_about_another_key",
               [](Stage& s) {
                 s.state(s.by(s.trust.ci_key, {entry_subject(s.other_key), "acme", TrustFixture::kEpoch, s.digest}));
               }),
      unsealed("a_statement_about_a_bundle",
               [](Stage& s) {
                 s.state(s.by(s.trust.ci_key, {"kiln bundle 1", "acme", TrustFixture::kEpoch, s.digest}));
               }),
      unsealed("a_changed_signature",
               [](Stage& s) {
                 SignedStatement stated = s.ci();
                 stated.signature->bytes[10] ^= 1;
                 s.state(stated);
               }),
      unsealed("a_signature_of_zeros",
               [](Stage& s) {
                 SignedStatement stated = s.ci();
                 stated.signature->bytes.fill(0);
                 s.state(stated);
               }),
      unsealed("a_changed_digest",
               [](Stage& s) {
                 SignedStatement stated = s.ci();
                 stated.statement.digest.bytes[0] ^= 1;
                 s.state(stated);
               }),
      unsealed("a_raised_epoch",
               [](Stage& s) {
                 SignedStatement old = s.by(s.trust.ci_key, {s.subject, "acme", TrustFixture::kEpoch - 1, s.digest});
                 old.statement.epoch = TrustFixture::kEpoch;
                 s.state(old);
               }),
      unsealed("a_changed_namespace",
               [](Stage& s) {
                 SignedStatement stated = s.by(s.trust.ci_key, {s.subject, "other", TrustFixture::kEpoch, s.digest});
                 stated.statement.name_space = "acme";
                 s.state(stated);
               }),
      unsealed(
          "another_key_with_the_id_of_a_known_one",
          [](Stage& s) {
            SignedStatement stated = s.by(SecretKey::generate(), {s.subject, "acme", TrustFixture::kEpoch, s.digest});
            stated.signature->key = s.trust.ci_key.public_key().id();
            s.state(stated);
          }),
  };
}

std::vector<Scenario> policy_scenarios() {
  const auto rejected = [](std::string name, std::string word, std::function<void(Stage&)> plant) {
    return Scenario{std::move(name), std::move(word), Reach::Action, std::move(plant)};
  };
  return {
      rejected("not_signed", "unsigned",
               [](Stage& s) {
                 s.policy.allow_unsigned();  // applies to local bundles, not to servers
                 SignedStatement stated = s.ci();
                 stated.signature.reset();
                 s.state(stated);
               }),
      rejected("an_unknown_key", "unknown_key",
               [](Stage& s) {
                 s.state(s.by(SecretKey::generate(), {s.subject, "acme", TrustFixture::kEpoch, s.digest}));
               }),
      rejected("a_key_for_another_namespace", "namespace_not_allowed",
               [](Stage& s) {
                 s.state(s.by(s.trust.ci_key, {s.subject, "globex", TrustFixture::kEpoch, s.digest}));
               }),
      rejected("an_invalid_namespace", "invalid_namespace",
               [](Stage& s) {
                 s.state(s.by(s.trust.ci_key, {s.subject, "A//..", TrustFixture::kEpoch, s.digest}));
               }),
      rejected("an_old_epoch", "epoch_too_old",
               [](Stage& s) {
                 s.state(s.by(s.trust.ci_key, {s.subject, "acme", TrustFixture::kEpoch - 1, s.digest}));
               }),
      rejected("a_revoked_key", "revoked_key", [](Stage& s) { s.policy.revoke(s.trust.ci_key.public_key().id()); }),
      rejected("a_revoked_authority", "revoked_key",
               [](Stage& s) {
                 s.policy.revoke(s.trust.authority.public_key().id());
                 s.state(s.live());
               }),
      rejected("a_revoked_host", "revoked_key",
               [](Stage& s) {
                 s.policy.revoke(s.trust.host_key.public_key().id());
                 s.state(s.live());
               }),
      rejected("an_old_live_statement", "epoch_too_old",
               [](Stage& s) { s.state(s.live(s.trust.today - TrustFixture::kLiveDays - 1, s.trust.certificate())); }),
      rejected("a_live_statement_from_the_future", "epoch_in_future",
               [](Stage& s) { s.state(s.live(s.trust.today + 7, s.trust.certificate())); }),
      rejected("an_expired_certificate", "certificate_expired",
               [](Stage& s) { s.state(s.live(s.trust.today, s.trust.certificate(s.trust.today - 1))); }),
      rejected("a_certificate_of_another_host", "bad_signature",
               [](Stage& s) {
                 const auto other = SecretKey::generate();
                 s.state(s.live(s.trust.today, Certificate::make(s.trust.authority, other.public_key(), "acme/live",
                                                                 s.trust.today + 5)));
               }),
      rejected("a_certificate_with_a_changed_expiry", "bad_signature",
               [](Stage& s) {
                 Certificate certificate = s.trust.certificate(s.trust.today - 1);
                 certificate.last_day += 100;
                 s.state(s.live(s.trust.today, certificate));
               }),
      rejected("a_self_issued_certificate", "unknown_key",
               [](Stage& s) {
                 s.state(s.live(s.trust.today, Certificate::make(s.trust.host_key, s.trust.host_key.public_key(),
                                                                 "acme/live", s.trust.today + 5)));
               }),
      rejected("a_certificate_for_another_namespace", "namespace_not_allowed",
               [](Stage& s) { s.state(s.live(s.trust.today, s.trust.certificate(s.trust.today + 5, "acme/other"))); }),
      rejected("a_live_namespace_not_in_the_policy", "live_namespace_not_trusted",
               [](Stage& s) {
                 SignedStatement stated = s.by(s.trust.host_key, {s.subject, "acme/other", s.trust.today, s.digest});
                 stated.certificate = s.trust.certificate(s.trust.today + 5, "acme/other");
                 s.state(stated);
               }),
      rejected("a_host_without_a_certificate", "not_certified",
               [](Stage& s) { s.state(s.live(s.trust.today, std::nullopt)); }),
      rejected("an_authority_that_signs_as_a_host", "not_certified",
               [](Stage& s) {
                 s.state(s.by(s.trust.authority, {s.subject, "acme/live", s.trust.today, s.digest}));
               }),
  };
}

}  // namespace kiln::test
