#include "trust/keys.hpp"

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/render_json.hpp"
#include "base/error.hpp"

namespace kiln::cli {
namespace {

std::string described(const PublicKey& key) {
  return table_text({{"public key", key.text()}, {"id", short_id(key.id())}});
}

/// What the argument names: a file with a secret key, or a public key.
Result<PublicKey> public_key_of(const std::string& argument) {
  if (argument.starts_with("kiln-public-")) return PublicKey::parse(argument);
  if (argument.starts_with("kiln-secret-")) {
    return failure(Code::InvalidArgument,
                   "a secret key belongs in a file: on a command line every user of this machine can read it; make "
                   "another key, and take this one out of your policies");
  }
  const Result<SecretKey> secret = SecretKey::read(argument);
  if (!secret) return secret.error();
  return secret->public_key();
}

}  // namespace

int key_generate_command(const Arguments& arguments, Console& console) {
  const SecretKey secret = SecretKey::generate();
  if (const Status written = secret.write(arguments.output); !written) {
    console.error(written.error());
    return exit_code_of(written.error().code);
  }
  const PublicKey key = secret.public_key();
  if (arguments.json) {
    console.print(key_json(key, arguments.output));
    return kDone;
  }
  console.print(described(key));
  console.print("\nThe secret key is in " + arguments.output +
                ". Whoever has it can sign as you: keep it where bundles are made, and\nnowhere else. Who is to "
                "believe it has in his policy file:\n\n[[key]]\npublic = \"" +
                key.text() + "\"\nnamespaces = [\"acme/*\"]    # the ones that it may speak for");
  return kDone;
}

int key_show_command(const Arguments& arguments, Console& console) {
  const Result<PublicKey> key = public_key_of(arguments.key);
  if (!key) {
    console.error(key.error());
    return exit_code_of(key.error().code);
  }
  console.print(arguments.json ? key_json(*key, {}) : described(*key));
  return kDone;
}

}  // namespace kiln::cli
