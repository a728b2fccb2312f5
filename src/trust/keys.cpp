#include "trust/keys.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr std::string_view kPublicMagic = "kiln-public-1:";
constexpr std::string_view kSecretMagic = "kiln-secret-1:";
constexpr std::string_view kAnyPublic = "kiln-public-";
constexpr std::string_view kAnySecret = "kiln-secret-";
constexpr std::size_t kHexDigits = 64;
constexpr std::size_t kFileSize = kSecretMagic.size() + kHexDigits + 1;  // and the line's end

static_assert(crypto_sign_ed25519_SEEDBYTES == 32 && crypto_sign_ed25519_PUBLICKEYBYTES == 32 &&
              crypto_sign_ed25519_BYTES == 64);

/// Memory that is wiped when it goes. Not a string: those leave copies behind when they grow.
struct Wiped {
  std::array<unsigned char, kFileSize + 1> bytes{};
  Wiped() = default;
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;
  ~Wiped() { sodium_memzero(bytes.data(), bytes.size()); }
  char* text() { return reinterpret_cast<char*>(bytes.data()); }
};
static_assert(sizeof(Wiped) >= crypto_sign_ed25519_SECRETKEYBYTES);

/// libsodium's form of a secret key, which has the public one as its second half.
struct Expanded {
  Wiped secret;
  PublicKey open;

  explicit Expanded(const std::array<std::uint8_t, 32>& seed) {
    crypto_sign_ed25519_seed_keypair(open.bytes.data(), secret.bytes.data(), seed.data());
  }
};

/// Somebody else may have signed with a key that others can read.
Status check_alone(int fd, const std::string& path) {
  struct stat status;
  if (::fstat(fd, &status) != 0) return io_failure("cannot look at", path, errno);
  if ((status.st_mode & 077) == 0) return {};
  return failure(Code::Refused, path +
                                    " can be read or written by other users, who could have signed with it; if nobody "
                                    "did, run: chmod 600 " +
                                    path);
}

/// Fills the buffer as far as the file goes.
Result<std::size_t> read_up_to(int fd, char* buffer, std::size_t room, const std::string& path) {
  std::size_t got = 0;
  while (got != room) {
    const ssize_t count = ::read(fd, buffer + got, room - got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_failure("cannot read", path, errno);
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  return got;
}

/// What is wrong with a text that should have been a secret key. No part of it is repeated.
std::string not_a_secret(std::string_view text) {
  if (text.starts_with(kAnyPublic))
    return " is a public key; the secret one is in the file that 'kiln key generate' made";
  if (text.starts_with(kAnySecret) && !text.starts_with(kSecretMagic)) {
    return " is a secret key of a version that this kiln does not know; use the kiln that made it, or a newer one";
  }
  return " is no secret key of kiln's, or a damaged one; make one with 'kiln key generate'";
}

}  // namespace

KeyId PublicKey::id() const { return {sha256(bytes)}; }

std::string PublicKey::text() const { return std::string(kPublicMagic) + Digest{bytes}.hex(); }

Result<PublicKey> PublicKey::parse(std::string_view text) {
  if (text.starts_with(kAnySecret)) {
    return failure(Code::InvalidArgument,
                   "this is a secret key where a public one belongs; take it away from here, and "
                   "put what 'kiln key show' prints of it");
  }
  if (text.starts_with(kAnyPublic) && !text.starts_with(kPublicMagic)) {
    return failure(Code::InvalidArgument, "the public key is of a version that this kiln does not know");
  }
  if (text.starts_with(kPublicMagic)) {
    if (const std::optional<Digest> digits = Digest::from_hex(text.substr(kPublicMagic.size()))) {
      return PublicKey{digits->bytes};
    }
  }
  return failure(Code::InvalidArgument, "a public key is 'kiln-public-1:' and 64 hexadecimal digits");
}

Result<KeyId> parse_key_id(std::string_view text) {
  if (text.starts_with("kiln-")) {
    const Result<PublicKey> key = PublicKey::parse(text);
    if (!key) return key.error();
    return key->id();
  }
  if (const std::optional<Digest> digits = Digest::from_hex(text)) return KeyId{*digits};
  return failure(
      Code::InvalidArgument,
      "a key is named by 'kiln-public-1:' and 64 hexadecimal digits, or by all 64 of its id, which 'kiln key "
      "show --json' prints");
}

bool verifies(const PublicKey& key, const Signature& signature, const Statement& statement) {
  if (signature.key != key.id()) return false;
  const std::string message = statement.encode(signature.key);
  // Without sodium_init, which it does not need: that would cost every new process that opens a bundle.
  return crypto_sign_ed25519_verify_detached(signature.bytes.data(),
                                             reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                                             key.bytes.data()) == 0;
}

SecretKey SecretKey::generate() {
  // A key must never be made of anything but random bytes: libsodium ends the process where there are none.
  if (sodium_init() < 0) std::abort();
  SecretKey key;
  randombytes_buf(key.seed_.data(), key.seed_.size());
  return key;
}

Result<SecretKey> SecretKey::read(const std::string& path) {
  // Without waiting: a pipe would never come to an end.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) return io_failure("cannot open", path, errno);
  Wiped buffer;  // which has room for one more than there may be
  const Result<std::size_t> size = read_up_to(file.get(), buffer.text(), buffer.bytes.size(), path);
  if (!size) return size.error();
  std::string_view text(buffer.text(), *size);
  if (text.ends_with('\n')) text.remove_suffix(1);
  SecretKey key;
  std::size_t count = 0;
  const bool right = text.starts_with(kSecretMagic) && text.size() == kSecretMagic.size() + kHexDigits &&
                     sodium_hex2bin(key.seed_.data(), key.seed_.size(), text.data() + kSecretMagic.size(), kHexDigits,
                                    nullptr, &count, nullptr) == 0 &&
                     count == key.seed_.size();
  if (!right) return failure(Code::InvalidArgument, path + not_a_secret(text));
  if (Status alone = check_alone(file.get(), path); !alone) return std::move(alone).error();
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
    return failure(Code::Io, path + " is there already, and a key is never overwritten; give another name");
  }
  if (!file) return io_failure("cannot make", path, errno);
  Wiped buffer;
  kSecretMagic.copy(buffer.text(), kSecretMagic.size());
  sodium_bin2hex(buffer.text() + kSecretMagic.size(), kHexDigits + 1, seed_.data(), seed_.size());
  buffer.bytes[kFileSize - 1] = '\n';
  Status status = write_all(file.get(), {buffer.text(), kFileSize}, path);
  if (status.ok() && ::fsync(file.get()) != 0) status = io_failure("cannot write", path, errno);
  if (!status) ::unlink(path.c_str());  // half a key is none
  return status;
}

PublicKey SecretKey::public_key() const { return Expanded(seed_).open; }

Signature SecretKey::sign(const Statement& statement) const {
  const Expanded key(seed_);
  Signature signature{key.open.id(), {}};
  const std::string message = statement.encode(signature.key);
  crypto_sign_ed25519_detached(signature.bytes.data(), nullptr, reinterpret_cast<const unsigned char*>(message.data()),
                               message.size(), key.secret.bytes.data());
  return signature;
}

}  // namespace kiln
