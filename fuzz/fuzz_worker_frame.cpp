// Any bytes from a worker: as a frame, and as the payload of one.
#include <cstddef>
#include <cstdint>

#include "compile/worker_protocol.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::string_view payload = input;
  const auto frame = kiln::decode_frame(input);
  if (frame) {
    kiln::fuzz::require(input.starts_with(encode_frame(*frame)), "a frame is read and written alike");
    payload = frame->payload;
  }
  if (const auto reply = kiln::decode_reply(payload)) {
    kiln::fuzz::require(kiln::decode_reply(encode(*reply)).ok(), "a reply can be read again");
  }
  (void)kiln::decode_failure(payload);
  return 0;
}
