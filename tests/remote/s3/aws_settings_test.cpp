// SPDX-License-Identifier: Apache-2.0
#include "remote/s3/aws_settings.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "aws_environment.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class AwsSettingsTest : public testing::Test {
 protected:
  void write_files(const std::string& credentials, const std::string& config) {
    std::filesystem::create_directories(environment_.home(".aws"));
    write_secret(environment_.home(".aws/credentials"), credentials);
    write_secret(environment_.home(".aws/config"), config);
  }
  AwsEnvironment environment_;
};

constexpr const char* kCredentials =
    "# comment\n[default]\naws_access_key_id = file\naws_secret_access_key=s=1\n"
    "[other]\r\naws_access_key_id = other\r\naws_secret_access_key = s2\r\naws_session_token = t2\r\n";
constexpr const char* kConfig =
    "[default]\nregion = eu-central-1\ns3 =\n  region = nested\nendpoint_url = https://one.example\n"
    "[profile other]\nregion = ap-south-1\n[other]\nregion = wrong\n";

TEST_F(AwsSettingsTest, DefaultsWithoutSettings) {
  const AwsSettings settings = read_aws_settings().value();
  EXPECT_EQ(settings.region, "us-east-1");
  EXPECT_EQ(settings.endpoint, "");
  EXPECT_FALSE(settings.credentials);
}

TEST_F(AwsSettingsTest, ReadsDefaultProfile) {
  write_files(kCredentials, kConfig);
  const AwsSettings settings = read_aws_settings().value();
  EXPECT_EQ(settings.region, "eu-central-1");
  EXPECT_EQ(settings.endpoint, "https://one.example");
  EXPECT_EQ(settings.credentials.value(), (AwsCredentials{"file", "s=1", "", {}}));
}

TEST_F(AwsSettingsTest, ReadsChosenProfile) {
  write_files(kCredentials, kConfig);
  environment_.set("AWS_PROFILE", "other");
  const AwsSettings settings = read_aws_settings().value();
  EXPECT_EQ(settings.region, "ap-south-1");
  EXPECT_EQ(settings.credentials.value(), (AwsCredentials{"other", "s2", "t2", {}}));
  environment_.set("AWS_PROFILE", "absent");
  EXPECT_FALSE(read_aws_settings().has_value());
}

TEST_F(AwsSettingsTest, VariablesOverrideFiles) {
  write_files(kCredentials, kConfig);
  environment_.set_keys("variable", "secret");
  environment_.set("AWS_SESSION_TOKEN", "token");
  environment_.set("AWS_DEFAULT_REGION", "us-west-1");
  environment_.set("AWS_ENDPOINT_URL", "http://two.example");
  AwsSettings settings = read_aws_settings().value();
  EXPECT_EQ(settings.credentials.value(), (AwsCredentials{"variable", "secret", "token", {}}));
  EXPECT_EQ(settings.region, "us-west-1");
  EXPECT_EQ(settings.endpoint, "http://two.example");
  environment_.set("AWS_REGION", "us-west-2");
  environment_.set("AWS_ENDPOINT_URL_S3", "http://three.example");
  settings = read_aws_settings().value();
  EXPECT_EQ(settings.region, "us-west-2");
  EXPECT_EQ(settings.endpoint, "http://three.example");
  environment_.set("AWS_SECRET_ACCESS_KEY", nullptr);
  EXPECT_EQ(read_aws_settings().value().credentials.value().access_key, "file");
}

TEST_F(AwsSettingsTest, NamedFilesReplaceThoseBelowHome) {
  write_files("", "");
  write_secret(environment_.home("keys"), kCredentials);
  write_secret(environment_.home("settings"), kConfig);
  environment_.set("AWS_SHARED_CREDENTIALS_FILE", environment_.home("keys").c_str());
  environment_.set("AWS_CONFIG_FILE", environment_.home("settings").c_str());
  const AwsSettings settings = read_aws_settings().value();
  EXPECT_EQ(settings.credentials.value().access_key, "file");
  EXPECT_EQ(settings.region, "eu-central-1");
}

TEST_F(AwsSettingsTest, FilesOfKeysMustBePrivate) {
  write_files(kCredentials, kConfig);
  chmod(environment_.home(".aws/config").c_str(), 0644);
  EXPECT_TRUE(read_aws_settings().has_value());
  chmod(environment_.home(".aws/credentials").c_str(), 0644);
  const auto readable = read_aws_settings();
  ASSERT_FALSE(readable.has_value());
  EXPECT_EQ(readable.error().code, Code::Denied);
  EXPECT_THAT(readable.error().message, Not(HasSubstr("s=1")));
  chmod(environment_.home(".aws/credentials").c_str(), 0600);
  chmod(environment_.home(".aws/config").c_str(), 0666);
  EXPECT_FALSE(read_aws_settings().has_value());
}

TEST_F(AwsSettingsTest, KeysInConfigMustBePrivateToo) {
  write_files("", "[default]\naws_access_key_id = a\naws_secret_access_key = b\n");
  EXPECT_EQ(read_aws_settings().value().credentials.value().access_key, "a");
  chmod(environment_.home(".aws/config").c_str(), 0644);
  EXPECT_FALSE(read_aws_settings().has_value());
}

TEST_F(AwsSettingsTest, RejectsKeysThatBreakHeaders) {
  environment_.set_keys("key", "secret\r\nx-other: 1");
  const auto settings = read_aws_settings();
  ASSERT_FALSE(settings.has_value());
  EXPECT_THAT(settings.error().message, Not(HasSubstr("x-other")));
}

TEST_F(AwsSettingsTest, NamesUnsupportedSources) {
  write_files("", "[default]\nrole_arn = arn\n");
  EXPECT_EQ(read_aws_settings().value().unsupported, "role_arn");
  environment_.set("AWS_WEB_IDENTITY_TOKEN_FILE", "/token");
  EXPECT_EQ(read_aws_settings().value().unsupported, "AWS_WEB_IDENTITY_TOKEN_FILE");
}

}  // namespace
}  // namespace kiln::test
