// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/key.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/output/output.hpp"
#include "apps/kiln/output/render_json.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"
#include "trust/policy.hpp"
#include "trust/signed_statement.hpp"

namespace kiln::cli {
namespace {

constexpr std::string_view kPublicBegins = "kiln-public-";
constexpr std::string_view kSecretBegins = "kiln-secret-";
constexpr std::string_view kCertificateBegins = "kiln-certificate-";

std::string described(const PublicKey& key) {
  return table_text({{"public key", key.text()}, {"id", short_id(key.id())}});
}

std::string described(const Certificate& certificate) {
  const std::string last =
      day_text(certificate.last_day) + (certificate.last_day < day_of(system_clock().wall()) ? ", expired" : "");
  return table_text({{"host key", certificate.host.text()},
                     {"id", short_id(certificate.host.id())},
                     {"namespace", certificate.name_space},
                     {"last day", last},
                     {"certified by", short_id(certificate.signature.key)}});
}

/// Returns true if the argument, or the file that it names, starts with `with`. Reads from a file only the prefix that
/// all kinds of keys share, because the next bytes may be secret and must only be read into memory that is wiped.
bool begins(const std::string& argument, std::string_view with) {
  if (argument.starts_with(with)) return true;
  with = with.substr(0, kSecretBegins.size());
  const Fd file(::open(argument.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  char start[kSecretBegins.size()];
  return file && ::read(file.get(), start, with.size()) == static_cast<ssize_t>(with.size()) &&
         std::string_view(start, with.size()) == with;
}

/// Reads a file with a public key, which is one line.
Result<PublicKey> read_public_key(const std::string& path) {
  const Result<std::optional<Bytes>> bytes = read_file(path);
  if (!bytes) return bytes.error();
  if (!*bytes) return io_error("cannot open", path, ENOENT);
  std::string_view text = (*bytes)->view();
  if (text.ends_with('\n')) text.remove_suffix(1);
  Result<PublicKey> key = PublicKey::parse(text);
  if (!key) return make_error(key.error().code, path + ": " + key.error().message);
  return key;
}

/// Checks the arguments of `key certify`.
Status check_certify(const Arguments& arguments) {
  if (!is_name_space(arguments.name_space.value_or(""))) {
    return make_error(Code::InvalidArgument,
                      "'" + printable(arguments.name_space.value_or("")) +
                          "' is not a valid namespace; a host is certified for one, such as acme/live");
  }
  if (arguments.days == 0 || arguments.days > kMaxLiveDays) {
    return make_error(Code::InvalidArgument, "--days must be from 1 to " + std::to_string(kMaxLiveDays));
  }
  return {};
}

}  // namespace

Result<PublicKey> public_key_of(const std::string& argument) {
  if (argument.starts_with(kPublicBegins)) return PublicKey::parse(argument);
  if (argument.starts_with(kSecretBegins)) {
    return make_error(
        Code::InvalidArgument,
        "a secret key on the command line is visible to every user of this machine: it must be in a file; create "
        "a new key and remove this one from your policies");
  }
  if (begins(argument, kPublicBegins)) return read_public_key(argument);
  const Result<SecretKey> secret = SecretKey::read(argument);
  if (!secret) return secret.error();
  return secret->public_key();
}

int key_generate_command(const Arguments& arguments, Console& console) {
  const SecretKey secret = SecretKey::generate();
  if (const Status written = secret.write(arguments.output); !written) return report(written.error(), console);
  const PublicKey key = secret.public_key();
  if (arguments.json) {
    console.print(key_json(key, arguments.output));
    return kSuccess;
  }
  console.print(described(key));
  console.print(
      "\nThe secret key is in " + arguments.output +
      ". Every user of this file can sign as you: store it only on machines that build bundles.\nTo trust this "
      "key on a machine, with the namespaces that it can sign for:\n\n  kiln trust add " +
      key.text() + " --namespace 'acme/*'\n\nThat adds to its policy file:\n\n[[key]]\npublic = \"" + key.text() +
      "\"\nnamespaces = [\"acme/*\"]");
  return kSuccess;
}

int key_certify_command(const Arguments& arguments, Console& console) {
  if (const Status sound = check_certify(arguments); !sound) return report(sound.error(), console);
  const Result<PublicKey> host = public_key_of(arguments.key);
  if (!host) return report(host.error(), console);
  const Result<SecretKey> authority = SecretKey::read(arguments.signing_key);
  if (!authority) return report(authority.error(), console);
  const std::uint64_t last_day = day_of(system_clock().wall()) + arguments.days;
  const Certificate certificate = Certificate::make(*authority, *host, *arguments.name_space, last_day);
  if (const Status written = write_new_file(arguments.output, certificate.text() + "\n"); !written) {
    return report(written.error(), console);
  }
  if (arguments.json) {
    console.print(certificate_json(certificate, day_text(last_day), arguments.output));
    return kSuccess;
  }
  console.print(described(certificate));
  console.print("\nThe certificate is in " + arguments.output +
                ", which is not secret. The host publishes with KILN_REMOTE_SIGNING_KEY=<its secret key> and\n"
                "KILN_REMOTE_CERTIFICATE=<this file>. To trust it, add the certifying key to the policy "
                "file, and also:\n\n[[live]]\nnamespace = \"" +
                *arguments.name_space + "\"\ndays = 7    # days for which signed entries are valid");
  return kSuccess;
}

int key_show_command(const Arguments& arguments, Console& console) {
  if (begins(arguments.key, kCertificateBegins)) {
    const Result<Certificate> certificate = arguments.key.starts_with(kCertificateBegins)
                                                ? Certificate::parse(arguments.key)
                                                : Certificate::read(arguments.key);
    if (!certificate) return report(certificate.error(), console);
    console.print(arguments.json ? certificate_json(*certificate, day_text(certificate->last_day), {})
                                 : described(*certificate));
    return kSuccess;
  }
  const Result<PublicKey> key = public_key_of(arguments.key);
  if (!key) return report(key.error(), console);
  console.print(arguments.json ? key_json(*key, {}) : described(*key));
  return kSuccess;
}

}  // namespace kiln::cli
