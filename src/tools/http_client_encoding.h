#pragma once
// The content encodings that an answer may have: those that requests offer. A body counts as whole only when its encoding has come to
// its own end, which libcurl's decoders don't tell.
#include <zlib.h>

#include <functional>
#include <string_view>

namespace holdfast::tools {

class BodyDecoder {
 public:
  enum class Encoding { gzip, deflate, unknown };

  /// `name`: the value of Content-Encoding, in any case; not empty and not `identity`.
  explicit BodyDecoder(std::string_view name);
  ~BodyDecoder();
  BodyDecoder(const BodyDecoder&) = delete;
  BodyDecoder& operator=(const BodyDecoder&) = delete;

  /// Decodes the next bytes of the body and hands `take` what comes of them, at most 16 KiB at a time. False when they are not in the
  /// encoding, when it is none of ours, or when `take` returned false.
  [[nodiscard]] bool decode(std::string_view bytes, const std::function<bool(std::string_view)>& take);
  /// Nothing has come, or everything up to the encoding's own end.
  [[nodiscard]] bool whole() const { return !begun_ || ended_; }

 private:
  [[nodiscard]] bool begin(std::string_view bytes);

  const Encoding encoding_;
  z_stream stream_{};
  bool ready_ = false;  // the stream has to be given back
  bool begun_ = false;  // bytes have come
  bool ended_ = false;
};

/// Whether an answer with this Content-Encoding has to be decoded.
[[nodiscard]] bool is_encoded(std::string_view content_encoding);

}  // namespace holdfast::tools
