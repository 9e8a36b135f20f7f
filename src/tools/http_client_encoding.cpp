#include "tools/http_client_encoding.h"

#include <array>

#include "core/ascii.h"

namespace holdfast::tools {
namespace {

constexpr int kWindowBits = 15, kGzip = 16;  // zlib's words: the largest window, and a gzip header around it

BodyDecoder::Encoding encoding_named(std::string_view name) {
  const std::string lower = ascii::lowered(ascii::trimmed(name));
  if (lower == "gzip" || lower == "x-gzip") return BodyDecoder::Encoding::gzip;
  return lower == "deflate" ? BodyDecoder::Encoding::deflate : BodyDecoder::Encoding::unknown;
}

/// RFC 9110 means a zlib stream by `deflate`; some servers send the bare one.
bool looks_bare(std::string_view bytes) {
  return (static_cast<unsigned char>(bytes.front()) & 0x0f) != Z_DEFLATED;
}

}  // namespace

bool is_encoded(std::string_view content_encoding) {
  const std::string_view name = ascii::trimmed(content_encoding);
  return !name.empty() && ascii::lowered(name) != "identity";
}

BodyDecoder::BodyDecoder(std::string_view name) : encoding_(encoding_named(name)) {}

BodyDecoder::~BodyDecoder() {
  if (ready_) inflateEnd(&stream_);
}

bool BodyDecoder::begin(std::string_view bytes) {
  begun_ = true;
  if (encoding_ == Encoding::unknown) return false;
  const int bits = encoding_ == Encoding::gzip ? kWindowBits + kGzip : looks_bare(bytes) ? -kWindowBits : kWindowBits;
  return ready_ = inflateInit2(&stream_, bits) == Z_OK;
}

bool BodyDecoder::decode(std::string_view bytes, const std::function<bool(std::string_view)>& take) {
  if (bytes.empty()) return true;
  if (!begun_ && !begin(bytes)) return false;
  if (!ready_) return false;
  std::array<char, 16 * 1024> out;
  stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));  // zlib only reads there
  stream_.avail_in = static_cast<uInt>(bytes.size());
  do {
    if (ended_) {  // gzip may have several members; what follows the end of anything else is surplus
      if (encoding_ != Encoding::gzip || inflateReset(&stream_) != Z_OK) return false;
      ended_ = false;
    }
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) return false;
    ended_ = result == Z_STREAM_END;
    const std::size_t made = out.size() - stream_.avail_out;
    if (made > 0 && !take({out.data(), made})) return false;
    if (result == Z_BUF_ERROR && made == 0) break;  // wants more bytes
  } while (stream_.avail_in > 0 || (stream_.avail_out == 0 && !ended_));
  return true;
}

}  // namespace holdfast::tools
