// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "base/hash.hpp"
#include "remote/s3/s3_error.hpp"
#include "remote/s3/s3_listing.hpp"
#include "remote/s3/s3_location.hpp"

namespace kiln::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(S3Url, NamesBucketAndPrefix) {
  EXPECT_EQ(parse_s3_url("s3://bucket").value().bucket, "bucket");
  EXPECT_EQ(parse_s3_url("s3://bucket/").value().prefix, "");
  EXPECT_EQ(parse_s3_url("s3://my.bucket-1/a/b_c~1.2/").value().prefix, "a/b_c~1.2/");
}

TEST(S3Url, RejectsOtherText) {
  for (const std::string url :
       {"", "s3:", "s3://", "s3:///a", "s3://ab", "s3://Bucket", "s3://bu..cket", "s3://-bucket", "s3://bucket//a",
        "s3://bucket/a//b", "s3://bucket/../a", "s3://bucket/.", "s3://bucket/a b", "s3://bucket/a?b",
        "s3://bucket/%41", "s3://bucket/\xc3\xa4", "https://bucket/a"}) {
    EXPECT_FALSE(parse_s3_url(url).has_value()) << url;
  }
  EXPECT_FALSE(parse_s3_url("s3://bucket/" + std::string(600, 'a')).has_value());
}

TEST(S3Url, RejectsCredentialsWithoutRepeatingThem) {
  const auto parsed = parse_s3_url("s3://user:secret@bucket/a");
  ASSERT_FALSE(parsed.has_value());
  EXPECT_THAT(parsed.error().message, Not(HasSubstr("secret")));
}

TEST(S3Location, VirtualHostOnAwsAndPathStyleElsewhere) {
  EXPECT_EQ(bucket_url("kiln", "eu-west-1", "", {}).value(), "https://kiln.s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(bucket_url("kiln", "cn-north-1", "", {}).value(), "https://kiln.s3.cn-north-1.amazonaws.com.cn");
  EXPECT_EQ(bucket_url("a.b.c", "eu-west-1", "", {}).value(), "https://s3.eu-west-1.amazonaws.com/a.b.c");
  EXPECT_EQ(bucket_url("kiln", "eu-west-1", "", true).value(), "https://s3.eu-west-1.amazonaws.com/kiln");
  EXPECT_EQ(bucket_url("kiln", "us-east-1", "http://h:9000/", {}).value(), "http://h:9000/kiln");
  EXPECT_EQ(bucket_url("kiln", "us-east-1", "http://h:9000", false).value(), "http://kiln.h:9000");
}

TEST(S3Location, RejectsInvalidRegionAndEndpoint) {
  EXPECT_FALSE(bucket_url("kiln", "eu west", "", {}).has_value());
  EXPECT_FALSE(bucket_url("kiln", "a/b", "", {}).has_value());
  EXPECT_FALSE(bucket_url("kiln", "us-east-1", "ftp://h", {}).has_value());
  const auto url = bucket_url("kiln", "us-east-1", "https://user:secret@h", {});
  ASSERT_FALSE(url.has_value());
  EXPECT_THAT(url.error().message, Not(HasSubstr("secret")));
}

TEST(S3Location, EncodesQueryValues) { EXPECT_EQ(encode_query_value("a/b c~_.-\xff"), "a%2Fb%20c~_.-%FF"); }

std::string error_body(const std::string& code, const std::string& more = {}) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" + code + "</Code><Message>m</Message>" + more +
         "</Error>";
}

TEST(S3Failure, NamesCauseAndNextStep) {
  const struct {
    long status;
    std::string code;
    Code expected;
    std::string text;
  } cases[] = {
      {403, "SignatureDoesNotMatch", Code::Denied, "secret key"},
      {403, "InvalidAccessKeyId", Code::Denied, "access key"},
      {403, "RequestTimeTooSkewed", Code::Denied, "clock"},
      {403, "AccessDenied", Code::Denied, "s3:GetObject"},
      {400, "ExpiredToken", Code::Denied, "expired"},
      {404, "NoSuchBucket", Code::Denied, "bucket does not exist"},
      {503, "SlowDown", Code::Unavailable, "overloaded"},
      {500, "InternalError", Code::Unavailable, "failing"},
      {400, "RequestTimeout", Code::Unavailable, "overloaded"},
      {501, "NotImplemented", Code::Unsupported, "not support"},
      {400, "Unknown", Code::Denied, "rejected"},
      {301, "PermanentRedirect", Code::Denied, "set AWS_REGION to the region of the bucket"},
  };
  for (const auto& one : cases) {
    const Error error = s3_error("GET x", parse_s3_failure(one.status, error_body(one.code)), "us-east-1");
    EXPECT_EQ(error.code, one.expected) << one.code;
    EXPECT_THAT(error.message, HasSubstr(one.text)) << one.code;
    EXPECT_THAT(error.message, HasSubstr(one.code));
  }
  const auto moved = parse_s3_failure(400, error_body("AuthorizationHeaderMalformed", "<Region>eu-west-3</Region>"));
  EXPECT_THAT(s3_error("GET x", moved, "us-east-1").message, HasSubstr("set AWS_REGION to 'eu-west-3'"));
}

TEST(S3Failure, OnlyMissingKeyIsMiss) {
  EXPECT_TRUE(parse_s3_failure(404, error_body("NoSuchKey")).is_absent());
  EXPECT_TRUE(parse_s3_failure(404, "").is_absent());
  EXPECT_FALSE(parse_s3_failure(404, error_body("NoSuchBucket")).is_absent());
  EXPECT_FALSE(parse_s3_failure(403, error_body("AccessDenied")).is_absent());
}

TEST(S3Failure, DropsOtherText) {
  EXPECT_EQ(parse_s3_failure(500, "<html><body>Bad").code, "");
  EXPECT_EQ(parse_s3_failure(500, error_body("a\x1b[2J")).code, "");
  EXPECT_EQ(parse_s3_failure(500, error_body(std::string(1000, 'a'))).code, "");
}

std::string listing(const std::string& rows, const char* truncated = "false") {
  return "<?xml version='1.0' encoding='UTF-8'?>\n<ListBucketResult xmlns=\"http://s3/doc>/\"><Name>b</Name>\n"
         "<IsTruncated>" +
         std::string(truncated) + "</IsTruncated>" + rows + "</ListBucketResult>\n";
}
std::string row(const std::string& key, const std::string& size = "7") {
  return "<Contents><Key>" + key +
         "</Key><LastModified>1970-01-01T00:00:02.000Z</LastModified><ETag>&quot;e&#34;</ETag>" + "<Size>" + size +
         "</Size><Owner><ID>o</ID></Owner><Empty/></Contents>";
}

TEST(S3Listing, ReadsObjectsOfPrefix) {
  const std::string one = sha256("1").hex();
  const auto page =
      parse_s3_listing(listing(row("p/ac/" + one) + row("p/ac/other") + row("q/" + one), "true"), "p/ac/");
  ASSERT_TRUE(page.has_value());
  ASSERT_EQ(page->objects.size(), 1U);
  EXPECT_EQ(page->objects[0].name.hex(), one);
  EXPECT_EQ(page->objects[0].bytes, 7U);
  EXPECT_EQ(page->objects[0].modified, std::chrono::seconds(2));
  EXPECT_TRUE(page->is_truncated);
  EXPECT_EQ(page->last_key, "q/" + one);
}

TEST(S3Listing, RejectsOtherText) {
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("<ListBucketResult>"), std::string("<Other></Other>"),
        listing(row("k", "-1")), listing(row("k", "7x")), listing("<Contents></Other>"), listing("<!-- c -->"),
        listing("<![CDATA[x]]>"), listing("&unknown;"), listing("<a b='"), listing("") + "<x/>",
        std::string("</ListBucketResult>"), std::string("<ListBucketResult></ListBucketResult"),
        "<!DOCTYPE x>" + listing(""), listing("<Contents><Key>&other;</Key></Contents>")}) {
    EXPECT_FALSE(parse_s3_listing(text, "").has_value()) << text;
  }
  std::string deep;
  for (int i = 0; i < 20; ++i) deep += "<a>";
  EXPECT_FALSE(parse_s3_listing("<ListBucketResult>" + deep, "").has_value());
}

TEST(S3Listing, ReadsTimes) {
  EXPECT_EQ(parse_utc("1970-01-02T00:00:01Z"), std::chrono::seconds(86401));
  EXPECT_EQ(parse_utc("1970-01-02T00:00:01.123Z"), std::chrono::seconds(86401));
  for (const char* text : {"", "Z", "1970-01-02T00:00:01", "1970-13-02T00:00:01Z", "1970-01-02 00:00:01Z",
                           "1970-01-02T24:00:01Z", "9999-01-02T00:00:01Z"}) {
    EXPECT_EQ(parse_utc(text), std::chrono::nanoseconds(0)) << text;
  }
}

}  // namespace
}  // namespace kiln::test
