// SPDX-License-Identifier: Apache-2.0
#include "remote/s3/aws_settings.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/files/owned_file.hpp"
#include "base/process/environment.hpp"
#include "base/text.hpp"

namespace kiln {
namespace {

constexpr std::uint64_t kMaxFile = 1 << 20;
constexpr std::size_t kMaxKey = 256;
constexpr std::size_t kMaxToken = 16 << 10;
constexpr std::string_view kLineSpaces = " \t\r";

using Section = std::map<std::string, std::string>;

std::string_view trim(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kLineSpaces), text.size()));
  return text.substr(0, text.find_last_not_of(kLineSpaces) + 1);
}

bool is_plain(std::string_view text, std::size_t maximum) {
  return text.size() <= maximum && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

/// Returns the value of the first variable that is set and not empty.
std::string first_variable(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::string value = aws_variable(name); !value.empty()) return value;
  }
  return {};
}

std::string value_of(const Section& section, const char* name) {
  const auto found = section.find(name);
  return found == section.end() ? std::string() : found->second;
}

AwsCredentials keys_of(const Section& section) {
  return {value_of(section, "aws_access_key_id"),
          value_of(section, "aws_secret_access_key"),
          value_of(section, "aws_session_token"),
          {}};
}

/// Returns the section of a file; an empty one if the file does not exist.
Result<Section> read_section(const std::string& path, const std::string& section, FileUse use) {
  if (path.empty()) return Section();
  const Result<OwnedFile> file = open_owned_file(path, use);
  if (!file && file.error().code == Code::Unavailable) return Section();
  if (!file) return file.error();
  if (file->size > kMaxFile) {
    return make_error(Code::InvalidArgument, path + " is larger than 1 MiB; remove profiles that are not used");
  }
  const Result<Bytes> bytes = read_all(file->fd.get(), file->size, path);
  if (!bytes) return bytes.error();
  return parse_aws_section(bytes->view(), section);
}

std::string file_path(const char* name, const char* below) {
  std::string path = aws_variable(name);
  return path.empty() ? user_path("", ".aws", below) : path;
}

/// The profile of the user: the two sections with its name.
struct Profile {
  Section keys;      // of the file `credentials`
  Section settings;  // of the file `config`
  std::string config_path;
  std::string config_section;
};

Result<Profile> read_profile() {
  const std::string chosen = first_variable({"AWS_PROFILE"});
  const std::string name = chosen.empty() ? "default" : chosen;
  Profile profile;
  profile.config_path = file_path("AWS_CONFIG_FILE", "config");
  profile.config_section = name == "default" ? name : "profile " + name;
  auto keys = read_section(file_path("AWS_SHARED_CREDENTIALS_FILE", "credentials"), name, FileUse::Secret);
  if (!keys) return keys.error();
  // Most files contain no keys, so that other users may read them.
  auto settings = read_section(profile.config_path, profile.config_section, FileUse::Obeyed);
  if (!settings) return settings.error();
  profile.keys = *std::move(keys);
  profile.settings = *std::move(settings);
  if (!chosen.empty() && profile.keys.empty() && profile.settings.empty()) {
    return make_error(Code::InvalidArgument, "AWS_PROFILE names a profile without settings; correct it or unset it");
  }
  return profile;
}

/// Returns the keys of the profile, or no value.
Result<std::optional<AwsCredentials>> profile_keys(const Profile& profile) {
  AwsCredentials found = keys_of(profile.keys);
  if (found.access_key.empty() || found.secret_key.empty()) {
    found = keys_of(profile.settings);
    if (found.access_key.empty() || found.secret_key.empty()) return std::optional<AwsCredentials>();
    const auto secret = read_section(profile.config_path, profile.config_section, FileUse::Secret);
    if (!secret) return secret.error();
  }
  return std::optional<AwsCredentials>(std::move(found));
}

std::string unsupported_source(const Profile& profile) {
  if (!aws_variable("AWS_WEB_IDENTITY_TOKEN_FILE").empty()) return "AWS_WEB_IDENTITY_TOKEN_FILE";
  for (const Section* section : {&profile.settings, &profile.keys}) {
    for (const char* name : {"role_arn", "credential_process", "sso_session", "sso_start_url"}) {
      if (section->contains(name)) return name;
    }
  }
  return {};
}

}  // namespace

std::string aws_variable(const char* name) { return environment_variable(name).value_or(std::string()); }

bool is_valid(const AwsCredentials& credentials) {
  return !credentials.access_key.empty() && is_plain(credentials.access_key, kMaxKey) &&
         !credentials.secret_key.empty() && is_plain(credentials.secret_key, kMaxKey) &&
         is_plain(credentials.session_token, kMaxToken);
}

std::map<std::string, std::string> parse_aws_section(std::string_view text, std::string_view section) {
  Section found;
  bool is_inside = false;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view content = trim(line);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    if (content.front() == '[') {
      is_inside = content.ends_with(']') && trim(content.substr(1, content.size() - 2)) == section;
      continue;
    }
    const std::size_t equals = content.find('=');
    const bool is_nested = kLineSpaces.find(line.front()) != std::string_view::npos;
    if (!is_inside || is_nested || equals == std::string_view::npos) continue;
    found[std::string(trim(content.substr(0, equals)))] = trim(content.substr(equals + 1));
  }
  return found;
}

Result<AwsSettings> read_aws_settings() {
  AwsSettings settings;
  const Result<Profile> profile = read_profile();
  const AwsCredentials from_variables{
      aws_variable("AWS_ACCESS_KEY_ID"), aws_variable("AWS_SECRET_ACCESS_KEY"), aws_variable("AWS_SESSION_TOKEN"), {}};
  const bool has_variables = !from_variables.access_key.empty() && !from_variables.secret_key.empty();
  if (!profile) return profile.error();
  if (has_variables) {
    settings.credentials = from_variables;
  } else {
    auto keys = profile_keys(*profile);
    if (!keys) return keys.error();
    settings.credentials = *std::move(keys);
  }
  if (settings.credentials && !is_valid(*settings.credentials)) {
    return make_error(Code::InvalidArgument,
                      "the AWS access key, secret key or session token contains spaces or is too long; correct the "
                      "variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or the profile");
  }
  if (!settings.credentials) settings.unsupported = unsupported_source(*profile);
  settings.region = first_variable({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (settings.region.empty()) settings.region = value_of(profile->settings, "region");
  if (settings.region.empty()) settings.region = "us-east-1";
  settings.endpoint = first_variable({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (settings.endpoint.empty()) settings.endpoint = value_of(profile->settings, "endpoint_url");
  return settings;
}

}  // namespace kiln
