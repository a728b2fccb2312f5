// SPDX-License-Identifier: Apache-2.0
#include "trust/keys.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/files/owned_file.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr std::string_view kPublicMagic = "kiln-public-1:";
constexpr std::string_view kSecretMagic = "kiln-secret-1:";
constexpr std::string_view kAnyPublic = "kiln-public-";
constexpr std::string_view kAnySecret = "kiln-secret-";
constexpr std::size_t kHexDigits = 64;
constexpr std::size_t kFileSize = kSecretMagic.size() + kHexDigits + 1;  // including the newline

static_assert(crypto_sign_ed25519_SEEDBYTES == 32 && crypto_sign_ed25519_PUBLICKEYBYTES == 32 &&
              crypto_sign_ed25519_BYTES == 64);

/// Memory that is wiped in the destructor. Not a string, which leaves copies behind when it grows.
struct SecureBuffer {
  std::array<unsigned char, kFileSize + 1> bytes{};
  SecureBuffer() = default;
  SecureBuffer(const SecureBuffer&) = delete;
  SecureBuffer& operator=(const SecureBuffer&) = delete;
  ~SecureBuffer() { sodium_memzero(bytes.data(), bytes.size()); }
  char* text() { return reinterpret_cast<char*>(bytes.data()); }
};
static_assert(sizeof(SecureBuffer) >= crypto_sign_ed25519_SECRETKEYBYTES);

/// libsodium's form of a secret key, whose second half is the public key.
struct ExpandedKey {
  SecureBuffer secret;
  PublicKey open;

  explicit ExpandedKey(const std::array<std::uint8_t, 32>& seed) {
    crypto_sign_ed25519_seed_keypair(open.bytes.data(), secret.bytes.data(), seed.data());
  }
};

/// Reads until the buffer is full or the file ends.
Result<std::size_t> read_up_to(int fd, char* buffer, std::size_t room, const std::string& path) {
  std::size_t got = 0;
  while (got != room) {
    const ssize_t count = ::read(fd, buffer + got, room - got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error("cannot read", path, errno);
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  return got;
}

/// Returns why a text is not a secret key, without repeating any part of it.
std::string not_a_secret(std::string_view text) {
  if (text.starts_with(kAnyPublic)) return " is a public key; use the secret key file that 'kiln key generate' wrote";
  if (text.starts_with(kAnySecret) && !text.starts_with(kSecretMagic)) {
    return " is a secret key of an unknown version; use the version of kiln that wrote it, or a newer one";
  }
  return " is not a kiln secret key, or is corrupt; create one with 'kiln key generate'";
}

}  // namespace

KeyId PublicKey::id() const { return {sha256(bytes)}; }

std::string PublicKey::text() const { return std::string(kPublicMagic) + Digest{bytes}.hex(); }

Result<PublicKey> PublicKey::parse(std::string_view text) {
  if (text.starts_with(kAnySecret)) {
    return make_error(Code::InvalidArgument,
                      "this is a secret key, but a public key is expected; remove it from here and "
                      "use the output of 'kiln key show' instead");
  }
  if (text.starts_with(kAnyPublic) && !text.starts_with(kPublicMagic)) {
    return make_error(Code::InvalidArgument, "the public key has an unknown version");
  }
  if (text.starts_with(kPublicMagic)) {
    if (const std::optional<Digest> digits = Digest::from_hex(text.substr(kPublicMagic.size()))) {
      return PublicKey{digits->bytes};
    }
  }
  return make_error(Code::InvalidArgument, "invalid public key: expected 'kiln-public-1:' and 64 hexadecimal digits");
}

Result<KeyId> parse_key_id(std::string_view text) {
  if (text.starts_with("kiln-")) {
    const Result<PublicKey> key = PublicKey::parse(text);
    if (!key) return key.error();
    return key->id();
  }
  if (const std::optional<Digest> digits = Digest::from_hex(text)) return KeyId{*digits};
  return make_error(
      Code::InvalidArgument,
      "invalid key: expected 'kiln-public-1:' and 64 hexadecimal digits, or the 64 digits of its id as 'kiln key "
      "show --json' prints it");
}

bool verify_signature(const PublicKey& key, const Signature& signature, const Statement& statement) {
  if (signature.key != key.id()) return false;
  const std::string message = statement.encode(signature.key);
  // Without sodium_init, which this function does not need: it would slow down every process that opens a bundle.
  return crypto_sign_ed25519_verify_detached(signature.bytes.data(),
                                             reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                                             key.bytes.data()) == 0;
}

SecretKey SecretKey::generate() {
  // A key must consist of random bytes only: libsodium ends the process if there are none.
  if (sodium_init() < 0) std::abort();
  SecretKey key;
  randombytes_buf(key.seed_.data(), key.seed_.size());
  return key;
}

Result<SecretKey> SecretKey::read(const std::string& path) {
  Result<OwnedFile> file = open_owned_file(path, FileUse::Secret);
  if (!file && file.error().code == Code::Unavailable) return io_error("cannot open", path, ENOENT);
  // A file that other users can read is read all the same: if it is a public key, that is the error to report.
  const std::optional<Error> rejected = file ? std::nullopt : std::optional(file.error());
  if (rejected) file = open_owned_file(path, FileUse::Obeyed);
  if (!file) return *rejected;
  SecureBuffer buffer;  // one byte larger than a valid file
  const Result<std::size_t> size = read_up_to(file->fd.get(), buffer.text(), buffer.bytes.size(), path);
  if (!size) return size.error();
  std::string_view text(buffer.text(), *size);
  if (text.ends_with('\n')) text.remove_suffix(1);
  SecretKey key;
  std::size_t count = 0;
  const bool right = text.starts_with(kSecretMagic) && text.size() == kSecretMagic.size() + kHexDigits &&
                     sodium_hex2bin(key.seed_.data(), key.seed_.size(), text.data() + kSecretMagic.size(), kHexDigits,
                                    nullptr, &count, nullptr) == 0 &&
                     count == key.seed_.size();
  if (!right) return make_error(Code::InvalidArgument, path + not_a_secret(text));
  if (rejected) return *rejected;
  return key;
}

SecretKey::SecretKey(SecretKey&& other) noexcept : seed_(other.seed_) {
  sodium_memzero(other.seed_.data(), other.seed_.size());
}

SecretKey& SecretKey::operator=(SecretKey&& other) noexcept {
  if (this == &other) return *this;
  seed_ = other.seed_;
  sodium_memzero(other.seed_.data(), other.seed_.size());
  return *this;
}

SecretKey::~SecretKey() { sodium_memzero(seed_.data(), seed_.size()); }

Status SecretKey::write(const std::string& path) const {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file && errno == EEXIST) {
    return make_error(Code::Io, path + " already exists, and keys are never overwritten; use another name");
  }
  if (!file) return io_error("cannot create", path, errno);
  SecureBuffer buffer;
  kSecretMagic.copy(buffer.text(), kSecretMagic.size());
  sodium_bin2hex(buffer.text() + kSecretMagic.size(), kHexDigits + 1, seed_.data(), seed_.size());
  buffer.bytes[kFileSize - 1] = '\n';
  Status status = write_all(file.get(), {buffer.text(), kFileSize}, path);
  if (status.has_value() && ::fsync(file.get()) != 0) status = io_error("cannot write", path, errno);
  if (!status) ::unlink(path.c_str());  // never leaves a partial key
  return status;
}

PublicKey SecretKey::public_key() const { return ExpandedKey(seed_).open; }

Signature SecretKey::sign(const Statement& statement) const {
  const ExpandedKey key(seed_);
  Signature signature{key.open.id(), {}};
  const std::string message = statement.encode(signature.key);
  crypto_sign_ed25519_detached(signature.bytes.data(), nullptr, reinterpret_cast<const unsigned char*>(message.data()),
                               message.size(), key.secret.bytes.data());
  return signature;
}

}  // namespace kiln
