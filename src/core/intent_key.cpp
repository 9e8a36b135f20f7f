#include "holdfast/core/intent_key.h"

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace holdfast {
namespace {

constexpr std::size_t kDigestBytes = 32;
using Digest = std::array<unsigned char, kDigestBytes>;

// Looking the algorithm up and making a context cost more than the digest of a short text: once per process, once per thread.
Digest sha256(std::string_view bytes) {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  static thread_local const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  Digest digest{};
  unsigned int length = 0;
  // It can fail only for want of memory or of the algorithm itself; a wrong key would be worse than no
  // process.
  if (EVP_DigestInit_ex2(context.get(), algorithm, nullptr) != 1 || EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) != 1 ||
      EVP_DigestFinal_ex(context.get(), digest.data(), &length) != 1 || length != kDigestBytes)
    std::abort();
  return digest;
}

void append_counted(std::string& out, std::string_view part) {
  const std::uint64_t size = part.size();
  for (int shift = 56; shift >= 0; shift -= 8) out += static_cast<char>(size >> shift & 0xFF);
  out += part;
}

}  // namespace

std::string intent_key(std::string_view run_id, std::string_view step_id, std::string_view target) {
  constexpr std::string_view kBase32 = "abcdefghijklmnopqrstuvwxyz234567";
  constexpr std::size_t kKeyBytes = 25;  // 40 characters of five bits
  std::string message;
  message.reserve(3 * sizeof(std::uint64_t) + run_id.size() + step_id.size() + target.size());
  append_counted(message, run_id);
  append_counted(message, step_id);
  append_counted(message, target);
  const Digest digest = sha256(message);

  std::string key = "hf1_";
  std::uint32_t bits = 0;
  int held = 0;
  for (std::size_t i = 0; i < kKeyBytes; ++i) {
    bits = (bits << 8 | digest[i]) & 0xFFF;  // at most 4 bits are left over from before
    for (held += 8; held >= 5; held -= 5) key += kBase32[bits >> (held - 5) & 31];
  }
  return key;
}

std::string sha256_hex(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  out.reserve(2 * kDigestBytes);
  for (const unsigned char byte : sha256(bytes)) {
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

}  // namespace holdfast
