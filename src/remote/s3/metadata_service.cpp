// SPDX-License-Identifier: Apache-2.0
#include "remote/s3/metadata_service.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/files/owned_file.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "remote/http/http_client.hpp"
#include "remote/http/http_url.hpp"
#include "remote/s3/s3_listing.hpp"
#include "remote/secret_file.hpp"

namespace kiln {
namespace {

constexpr std::uint64_t kMaxAnswer = 64 << 10;
constexpr std::size_t kMaxLine = 16 << 10;
constexpr JsonLimits kLimits{4, 64};

using Method = HttpRequest::Method;

bool is_line(std::string_view text) {
  return !text.empty() && text.size() <= kMaxLine &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

/// Returns whether keys may come from a URL: over TLS, or from this machine or the link-local addresses of ECS and EKS.
bool is_trusted(std::string_view url) {
  if (url.starts_with("https://")) return true;
  constexpr std::string_view kHttp = "http://";
  if (!url.starts_with(kHttp)) return false;
  url.remove_prefix(kHttp.size());
  const std::string_view authority = url.substr(0, url.find('/'));
  const bool has_brackets = authority.starts_with('[');
  const std::string_view host =
      has_brackets ? authority.substr(1, authority.find(']') - 1) : authority.substr(0, authority.find(':'));
  return is_this_machine(host) || host == "169.254.170.2" || host == "169.254.170.23" || host == "fd00:ec2::23";
}

Result<std::string> read_token(const MetadataService& service) {
  if (service.token_file.empty()) return service.token;
  // Kubernetes mounts this file so that all users of the container can read it.
  const Result<OwnedFile> file = open_owned_file(service.token_file, FileUse::Obeyed);
  if (!file) return file.error();
  const Result<Bytes> bytes =
      read_all(file->fd.get(), std::min<std::uint64_t>(file->size, kMaxLine), service.token_file);
  if (!bytes) return bytes.error();
  std::string token(bytes->view().substr(0, bytes->view().find_first_of("\r\n")));
  if (!is_line(token)) return make_error(Code::Unavailable, "no token in " + service.token_file);
  return token;
}

/// Sends one request and returns the body of a response with status 200.
Result<std::string> ask(HttpClient& client, Method method, const std::string& url, const std::string& header,
                        const Deadline& deadline) {
  HttpRequest request{method, url, {}, kMaxAnswer};
  if (!header.empty()) request.headers.push_back(header);
  request.max_other_bytes = kMaxAnswer;
  Result<HttpResponse> answer = client.send(request, deadline);
  if (!answer) return answer.error();
  if (answer->status == 200) return std::move(answer->body);
  return make_error(Code::Unavailable, request.name() + ": HTTP status " + std::to_string(answer->status) +
                                           ": no credentials; check the role of this host");
}

/// Returns the first line of an answer that is used in a header or a URL.
Result<std::string> first_line(Result<std::string> text, const std::string& url) {
  if (!text) return text;
  text->resize(std::min(text->find_first_of("\r\n"), text->size()));
  if (!is_line(*text)) return make_error(Code::Unavailable, url + ": unexpected response of the metadata service");
  return text;
}

/// Hides the path of a container's URL, which is a secret of the container.
std::string without_path(std::string text, const MetadataService& service) {
  const std::size_t found = service.is_instance ? std::string::npos : text.find(service.url);
  if (found == std::string::npos) return text;
  const std::size_t path = service.url.find('/', service.url.find("://") + 3);
  if (path != std::string::npos) text.erase(found + path, service.url.size() - path);
  return text;
}

Result<std::string> ask_instance(HttpClient& client, const std::string& url, const Deadline& deadline) {
  const auto token = first_line(
      ask(client, Method::Put, url + "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 21600", deadline),
      url);
  if (!token) return token.error();
  const std::string header = "X-aws-ec2-metadata-token: " + *token;
  const std::string roles = url + "/latest/meta-data/iam/security-credentials/";
  const auto role = first_line(ask(client, Method::Get, roles, header, deadline), url);
  if (!role) return role.error();
  if (role->find_first_of(" /?#%\\") != std::string::npos) {
    return make_error(Code::Unavailable, url + ": unexpected response of the metadata service");
  }
  return ask(client, Method::Get, roles + *role, header, deadline);
}

}  // namespace

Result<std::optional<MetadataService>> find_metadata_service() {
  MetadataService service;
  const std::string relative = aws_variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  if (!relative.empty()) {
    service.url = "http://169.254.170.2" + std::string(relative.starts_with('/') ? "" : "/") + relative;
  } else {
    service.url = aws_variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  }
  if (!service.url.empty()) {
    if (!is_line(service.url) || service.url.find('@') != std::string::npos || !is_trusted(service.url)) {
      return make_error(Code::InvalidArgument,
                        "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https:// nor an address of this machine or of "
                        "the container service; correct it");
    }
    service.token_file = aws_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    service.token = aws_variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (!service.token.empty() && !is_line(service.token)) {
      return make_error(Code::InvalidArgument, "AWS_CONTAINER_AUTHORIZATION_TOKEN is not a header value; correct it");
    }
    return std::optional<MetadataService>(std::move(service));
  }
  if (parse_boolean(aws_variable("AWS_EC2_METADATA_DISABLED")).value_or(false)) return std::optional<MetadataService>();
  service.is_instance = true;
  service.url = aws_variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (service.url.empty()) service.url = "http://169.254.169.254";
  const Result<HttpOptions> checked = validate_http_options({service.url, {}, {}, {}, {}});
  if (!checked) {
    return make_error(Code::InvalidArgument,
                      "AWS_EC2_METADATA_SERVICE_ENDPOINT is not a URL like http://169.254.169.254; correct it");
  }
  service.url = checked->url;
  return std::optional<MetadataService>(std::move(service));
}

Result<AwsCredentials> fetch_credentials(const MetadataService& service, const Deadline& deadline) {
  HttpClient client({service.url, {}, {}, {}, {}});
  const Result<std::string> token = read_token(service);
  if (!token) return token.error();
  const std::string header = token->empty() ? std::string() : "Authorization: " + *token;
  const Result<std::string> text = service.is_instance ? ask_instance(client, service.url, deadline)
                                                       : ask(client, Method::Get, service.url, header, deadline);
  if (!text) return make_error(text.error().code, without_path(text.error().message, service));
  auto parsed = parse_credentials(*text);
  if (!parsed) {
    return make_error(Code::Unavailable,
                      without_path(service.url, service) + ": unexpected response of the metadata service");
  }
  return *std::move(parsed);
}

std::optional<AwsCredentials> parse_credentials(std::string_view text) {
  const Result<SortedJson> json = parse_json(text, kLimits);
  if (!json) return std::nullopt;
  const auto string = [&](const char* name) {
    const SortedJson& value = member_of(*json, name);
    return value.is_string() ? value.get<std::string>() : std::string();
  };
  AwsCredentials found{string("AccessKeyId"), string("SecretAccessKey"), string("Token"),
                       parse_utc(string("Expiration"))};
  if (!is_valid(found)) return std::nullopt;
  return found;
}

}  // namespace kiln
