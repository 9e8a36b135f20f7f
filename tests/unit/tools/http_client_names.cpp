// Replaces the system's name lookup in this test program, so that lookups fail, stall or point inward on
// demand.
#include <dlfcn.h>
#include <netdb.h>

#include <chrono>
#include <string_view>
#include <thread>

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** out) {
  using Real = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string_view name = node ? node : "";
  if (name == "missing.test") return EAI_NONAME;
  if (name == "later.test") return EAI_AGAIN;
  if (name == "stalled.test") {
    std::this_thread::sleep_for(std::chrono::seconds(3));  // stands for a resolver that nobody answers
    return EAI_AGAIN;
  }
  if (name == "inside.test") return real("127.0.0.1", service, hints, out);
  if (name == "metadata.test") return real("169.254.169.254", service, hints, out);
  return real(node, service, hints, out);
}
