#include "tools/http_client_lookup.h"

#include <netdb.h>

#include <atomic>
#include <system_error>
#include <thread>

namespace holdfast::tools {
namespace {

constexpr int kMostLookups = 8;
std::atomic<int> lookups_out{0};

bool is_missing(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code == 0) freeaddrinfo(found);
  return code == EAI_NONAME
#ifdef EAI_NODATA
         || code == EAI_NODATA
#endif
      ;
}

}  // namespace

bool ask_whether_missing(std::string host, std::function<void(bool missing)> answer) {
  if (lookups_out.fetch_add(1) >= kMostLookups) {
    lookups_out.fetch_sub(1);
    return false;
  }
  try {
    std::thread([host = std::move(host), answer = std::move(answer)] {
      const bool missing = is_missing(host);
      lookups_out.fetch_sub(1);
      answer(missing);
    }).detach();
  } catch (const std::system_error&) {
    lookups_out.fetch_sub(1);
    return false;
  }
  return true;
}

}  // namespace holdfast::tools
